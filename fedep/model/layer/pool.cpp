#include "fedep/model/layer/pool.h"

#include <algorithm>

#include "fedep/model/layer/convolution.h"
#include "fedep/model/layer/vector_width.h"

namespace fedep {
namespace {

// best = max(best, x), and where it was found.
void take_larger(const float* x, std::uint32_t position, std::size_t channels, float* best,
                 std::uint32_t* source) {
  at_full_width([=]() __attribute__((always_inline)) {
    for (std::size_t c = 0; c < channels; ++c) {
      const bool larger = x[c] > best[c];
      source[c] = larger ? position : source[c];
      best[c] = larger ? x[c] : best[c];
    }
  });
}

}  // namespace

MaxPool::MaxPool(std::size_t height, std::size_t width, std::size_t channels, std::size_t window,
                 std::size_t stride, std::size_t out_height, std::size_t out_width,
                 std::size_t pad_top, std::size_t pad_left)
    : height_(height),
      width_(width),
      channels_(channels),
      window_(window),
      stride_(stride),
      out_height_(out_height),
      out_width_(out_width),
      pad_top_(pad_top),
      pad_left_(pad_left) {}

void MaxPool::forward(std::size_t n, const float* x, float* y) {
  source_.resize(n * output_size());
  std::uint32_t* source = source_.data();
  for (std::size_t image = 0; image < n; ++image, x += input_size()) {
    for (std::size_t oy = 0; oy < out_height_; ++oy) {
      for (std::size_t ox = 0; ox < out_width_; ++ox, y += channels_, source += channels_) {
        bool first = true;
        for (std::size_t k = 0; k < window_ * window_; ++k) {
          // Unsigned: a position before the map wraps around to one far behind it.
          const std::size_t iy = oy * stride_ + k / window_ - pad_top_;
          const std::size_t ix = ox * stride_ + k % window_ - pad_left_;
          if (iy >= height_ || ix >= width_) continue;
          const std::size_t position = iy * width_ + ix;
          const float* values = x + position * channels_;
          if (first) {
            std::copy_n(values, channels_, y);
            std::fill_n(source, channels_, std::uint32_t(position));
            first = false;
          } else {
            take_larger(values, std::uint32_t(position), channels_, y, source);
          }
        }
      }
    }
  }
}

void MaxPool::backward(std::size_t n, const float* dy, float* dx) const {
  std::fill_n(dx, n * input_size(), 0.0f);
  const std::uint32_t* source = source_.data();
  const std::size_t out_positions = out_height_ * out_width_;
  for (std::size_t image = 0; image < n; ++image, dx += input_size()) {
    for (std::size_t position = 0; position < out_positions; ++position) {
      for (std::size_t c = 0; c < channels_; ++c) dx[source[c] * channels_ + c] += dy[c];
      source += channels_;
      dy += channels_;
    }
  }
}

MaxPool valid_max_pool(std::size_t height, std::size_t width, std::size_t channels,
                       std::size_t window, std::size_t stride) {
  const ConvolutionShape s = valid_convolution(height, width, channels, channels, window, stride);
  return {height, width, channels, window, stride, s.out_height, s.out_width, 0, 0};
}

MaxPool same_max_pool(std::size_t height, std::size_t width, std::size_t channels,
                      std::size_t window, std::size_t stride) {
  const ConvolutionShape s = same_convolution(height, width, channels, channels, window, stride);
  return {height,       width,       channels,  window,    stride,
          s.out_height, s.out_width, s.pad_top, s.pad_left};
}

}  // namespace fedep
