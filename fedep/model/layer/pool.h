// The largest of each window of a map, per channel.
//
//   MaxPool pool = valid_max_pool(24, 24, 64, 2, 2);  // 24x24 -> 12x12
//   pool.forward(n, x, y);
//   pool.backward(n, dy, dx);  // each dy to where its largest was, the first of equals
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fedep {

class MaxPool {
 public:
  // Windows may reach beyond the map's end; what they would find there does not count.
  MaxPool(std::size_t height, std::size_t width, std::size_t channels, std::size_t window,
          std::size_t stride, std::size_t out_height, std::size_t out_width, std::size_t pad_top,
          std::size_t pad_left);

  std::size_t input_size() const { return height_ * width_ * channels_; }
  std::size_t output_size() const { return out_height_ * out_width_ * channels_; }

  void forward(std::size_t n, const float* x, float* y);
  void backward(std::size_t n, const float* dy, float* dx) const;

 private:
  std::size_t height_, width_, channels_, window_, stride_;
  std::size_t out_height_, out_width_, pad_top_, pad_left_;
  std::vector<std::uint32_t> source_;  // of each output: position in its image's map
};

MaxPool valid_max_pool(std::size_t height, std::size_t width, std::size_t channels,
                       std::size_t window, std::size_t stride);
// Output of ceil(size / stride), padded with -infinity as same_convolution() is with zeros.
MaxPool same_max_pool(std::size_t height, std::size_t width, std::size_t channels,
                      std::size_t window, std::size_t stride);

}  // namespace fedep
