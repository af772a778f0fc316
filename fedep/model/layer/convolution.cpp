#include "fedep/model/layer/convolution.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "fedep/model/blas.h"
#include "fedep/model/layer/elementwise.h"

namespace fedep {
namespace {

// Maps of at most this many positions are convolved tap by tap.
constexpr std::size_t kSmallMap = 9;
// Floats of copied-out rows at a time: they are written, read, and read again from a 1 MiB cache.
constexpr std::size_t kRowsAtOnce = 160 * 1024;

std::size_t pad_before(std::size_t size, std::size_t kernel, std::size_t stride, std::size_t out) {
  const std::size_t reach = (out - 1) * stride + kernel;
  return reach > size ? (reach - size) / 2 : 0;
}

void grow(std::vector<float>& buffer, std::size_t size) {
  if (buffer.size() < size) buffer.resize(size);
}

// Calls visit(row, first, count, from) for each row (kx, channel) of each (image, position, ky).
// It begins at `row` of all rows; `count` of its entries, from `first` on, are those of the maps
// from `from` on, the others are padding.
template <class Visit>
void visit_rows(ConvolutionShape s, std::size_t n, Visit visit) {
  std::size_t row = 0;
  for (std::size_t image = 0; image < n; ++image) {
    for (std::size_t oy = 0; oy < s.out_height; ++oy) {
      for (std::size_t ox = 0; ox < s.out_width; ++ox) {
        const std::size_t left = ox * s.stride;
        const std::size_t kx_begin = s.pad_left > left ? s.pad_left - left : 0;
        const std::size_t kx_end = std::min(s.kernel, s.width + s.pad_left - left);
        const std::size_t first = kx_begin * s.in, count = (kx_end - kx_begin) * s.in;
        for (std::size_t ky = 0; ky < s.kernel; ++ky, row += s.kernel * s.in) {
          const std::size_t iy = oy * s.stride + ky - s.pad_top;
          const std::size_t ix = left + kx_begin - s.pad_left;
          const std::size_t from = image * s.input_size() + (iy * s.width + ix) * s.in;
          if (iy < s.height) {
            visit(row, first, count, from);
          } else {
            visit(row, 0, 0, 0);
          }
        }
      }
    }
  }
}

// rows[(image, i)] = the channels of the image's map at positions[i].
const float* gather(const std::vector<std::size_t>& positions, std::size_t n, std::size_t map_size,
                    std::size_t channels, const float* map, std::vector<float>& rows) {
  grow(rows, n * positions.size() * channels);
  float* row = rows.data();
  for (std::size_t image = 0; image < n; ++image, map += map_size) {
    for (const std::size_t position : positions) {
      std::copy_n(map + position * channels, channels, row);
      row += channels;
    }
  }
  return rows.data();
}

// The transpose of gather: adds each row to where it came from.
void add_back(const std::vector<std::size_t>& positions, std::size_t n, std::size_t map_size,
              std::size_t channels, const float* row, float* map) {
  for (std::size_t image = 0; image < n; ++image, map += map_size) {
    for (const std::size_t position : positions) {
      add_to(row, channels, map + position * channels);
      row += channels;
    }
  }
}

}  // namespace

ConvolutionShape same_convolution(std::size_t height, std::size_t width, std::size_t in,
                                  std::size_t out, std::size_t kernel, std::size_t stride) {
  const std::size_t out_height = (height + stride - 1) / stride;
  const std::size_t out_width = (width + stride - 1) / stride;
  return {height,
          width,
          in,
          out_height,
          out_width,
          out,
          kernel,
          stride,
          pad_before(height, kernel, stride, out_height),
          pad_before(width, kernel, stride, out_width)};
}

ConvolutionShape valid_convolution(std::size_t height, std::size_t width, std::size_t in,
                                   std::size_t out, std::size_t kernel, std::size_t stride) {
  assert(height >= kernel && width >= kernel);
  return {
      height, width, in, (height - kernel) / stride + 1, (width - kernel) / stride + 1, out, kernel,
      stride, 0,     0};
}

Convolution::Convolution(const ConvolutionShape& shape) : shape_(shape) {
  for (std::size_t ky = 0; ky < shape.kernel; ++ky) {
    for (std::size_t kx = 0; kx < shape.kernel; ++kx) {
      Tap tap{.index = ky * shape.kernel + kx, .outputs = {}, .inputs = {}};
      for (std::size_t oy = 0; oy < shape.out_height; ++oy) {
        for (std::size_t ox = 0; ox < shape.out_width; ++ox) {
          // Unsigned: a position before the map wraps around to one far behind it.
          const std::size_t iy = oy * shape.stride + ky - shape.pad_top;
          const std::size_t ix = ox * shape.stride + kx - shape.pad_left;
          if (iy >= shape.height || ix >= shape.width) continue;
          tap.outputs.push_back(oy * shape.out_width + ox);
          tap.inputs.push_back(iy * shape.width + ix);
        }
      }
      if (tap.pairs() == 0) continue;
      tap.all_outputs = tap.pairs() == shape.positions();
      tap.all_inputs = tap.pairs() == shape.height * shape.width;
      taps_.push_back(std::move(tap));
    }
  }
  way_ = way();
}

std::vector<Range> Convolution::live() const {
  std::vector<Range> ranges;
  const std::size_t slice = shape_.in * shape_.out;
  for (const Tap& tap : taps_) {
    const Range range{tap.index * slice, (tap.index + 1) * slice};
    if (!ranges.empty() && ranges.back().end == range.begin) {
      ranges.back().end = range.end;
    } else {
      ranges.push_back(range);
    }
  }
  return ranges;
}

Convolution::Way Convolution::way() const {
  if (shape_.positions() <= kSmallMap || taps_.size() < shape_.kernel * shape_.kernel ||
      shape_.kernel == 1) {
    return Way::taps;
  }
  return Winograd::takes(shape_) ? Way::winograd : Way::rows;
}

std::size_t Convolution::images_at_once(std::size_t n) const {
  return std::clamp<std::size_t>(kRowsAtOnce / (shape_.positions() * row_length()), 1, n);
}

// rows_[(image, position), (ky, kx, channel)] = x, zero in the padding.
void Convolution::copy_out_rows(std::size_t n, const float* x) {
  grow(rows_, n * shape_.positions() * row_length());
  const std::size_t length = shape_.kernel * shape_.in;
  float* const rows = rows_.data();
  visit_rows(shape_, n,
             [=](std::size_t row, std::size_t first, std::size_t count, std::size_t from) {
               float* const to = rows + row;
               std::fill(to, to + first, 0.0f);
               std::copy_n(x + from, count, to + first);
               std::fill(to + first + count, to + length, 0.0f);
             });
}

// The transpose of copy_out_rows: adds each row's entries to where they came from.
void Convolution::add_rows_back(std::size_t n, float* dx) const {
  const float* const rows = rows_.data();
  visit_rows(shape_, n,
             [=](std::size_t row, std::size_t first, std::size_t count, std::size_t from) {
               add_to(rows + row + first, count, dx + from);
             });
}

// Rows (image, pair) of the inputs that a tap meets.
const float* Convolution::gather_inputs(const Tap& tap, std::size_t n, const float* x) {
  if (tap.all_inputs) return x;
  return gather(tap.inputs, n, shape_.input_size(), shape_.in, x, rows_);
}

const float* Convolution::gather_outputs(const Tap& tap, std::size_t n, const float* y) {
  if (tap.all_outputs) return y;
  return gather(tap.outputs, n, shape_.output_size(), shape_.out, y, others_);
}

void Convolution::forward(std::size_t n, const float* x, const float* w, float* y) {
  const ConvolutionShape& s = shape_;
  if (way_ == Way::winograd) return winograd_.forward(s, n, x, w, y);
  if (way_ == Way::rows) {
    const std::size_t step = images_at_once(n);
    for (std::size_t i = 0; i < n; i += step) {
      const std::size_t count = std::min(step, n - i);
      copy_out_rows(count, x + i * s.input_size());
      multiply(matrix(rows_.data(), count * s.positions(), row_length()),
               matrix(w, row_length(), s.out), y + i * s.output_size(), s.out);
    }
    return;
  }
  std::fill_n(y, n * s.output_size(), 0.0f);
  for (const Tap& tap : taps_) {
    const std::size_t rows = n * tap.pairs();
    const MatrixView inputs = matrix(gather_inputs(tap, n, x), rows, s.in);
    const MatrixView slice = matrix(w + tap.index * s.in * s.out, s.in, s.out);
    if (tap.all_outputs) {
      multiply(inputs, slice, y, s.out, 1.0f);
      continue;
    }
    grow(product_, rows * s.out);
    multiply(inputs, slice, product_.data(), s.out);
    add_back(tap.outputs, n, s.output_size(), s.out, product_.data(), y);
  }
}

void Convolution::input_gradient(std::size_t n, const float* dy, const float* w, float* dx) {
  const ConvolutionShape& s = shape_;
  if (way_ == Way::winograd) return winograd_.input_gradient(s, n, dy, w, dx);
  std::fill_n(dx, n * s.input_size(), 0.0f);
  if (way_ == Way::rows) {
    const std::size_t step = images_at_once(n);
    grow(rows_, step * s.positions() * row_length());
    for (std::size_t i = 0; i < n; i += step) {
      const std::size_t count = std::min(step, n - i);
      multiply(matrix(dy + i * s.output_size(), count * s.positions(), s.out),
               transposed(matrix(w, row_length(), s.out)), rows_.data(), row_length());
      add_rows_back(count, dx + i * s.input_size());
    }
    return;
  }
  for (const Tap& tap : taps_) {
    const std::size_t rows = n * tap.pairs();
    const MatrixView outputs = matrix(gather_outputs(tap, n, dy), rows, s.out);
    const MatrixView slice = transposed(matrix(w + tap.index * s.in * s.out, s.in, s.out));
    if (tap.all_inputs) {
      multiply(outputs, slice, dx, s.in, 1.0f);
      continue;
    }
    grow(product_, rows * s.in);
    multiply(outputs, slice, product_.data(), s.in);
    add_back(tap.inputs, n, s.input_size(), s.in, product_.data(), dx);
  }
}

void Convolution::weight_gradient(std::size_t n, const float* x, const float* dy, float keep,
                                  float* dw) {
  const ConvolutionShape& s = shape_;
  if (way_ == Way::winograd) return winograd_.weight_gradient(s, n, x, dy, keep, dw);
  if (way_ == Way::rows) {
    const std::size_t step = images_at_once(n);
    for (std::size_t i = 0; i < n; i += step) {
      const std::size_t count = std::min(step, n - i);
      copy_out_rows(count, x + i * s.input_size());
      multiply(transposed(matrix(rows_.data(), count * s.positions(), row_length())),
               matrix(dy + i * s.output_size(), count * s.positions(), s.out), dw, s.out,
               i == 0 ? keep : 1.0f);
    }
    return;
  }
  for (const Tap& tap : taps_) {
    const std::size_t rows = n * tap.pairs();
    multiply(transposed(matrix(gather_inputs(tap, n, x), rows, s.in)),
             matrix(gather_outputs(tap, n, dy), rows, s.out), dw + tap.index * s.in * s.out, s.out,
             keep);
  }
}

void Convolution::add_squared_weight_gradient(std::size_t n, const float* x, const float* dy,
                                              float* sum) {
  if (way_ == Way::taps) {
    square_by_taps(n, x, dy, sum);
  } else {
    square_by_rows(n, x, dy, sum);
  }
}

void Convolution::square_by_taps(std::size_t n, const float* x, const float* dy, float* sum) {
  const ConvolutionShape& s = shape_;
  for (const Tap& tap : taps_) {
    const std::size_t pairs = tap.pairs();
    const float* inputs = gather_inputs(tap, n, x);
    const float* outputs = gather_outputs(tap, n, dy);
    add_squared_products(n, pairs, s.in, s.out, inputs, outputs, sum + tap.index * s.in * s.out);
  }
}

void Convolution::square_by_rows(std::size_t n, const float* x, const float* dy, float* sum) {
  const ConvolutionShape& s = shape_;
  grow(product_, s.weights());
  for (std::size_t i = 0; i < n; ++i) {
    copy_out_rows(1, x + i * s.input_size());
    multiply(transposed(matrix(rows_.data(), s.positions(), row_length())),
             matrix(dy + i * s.output_size(), s.positions(), s.out), product_.data(), s.out);
    add_squares(product_.data(), s.weights(), sum);
  }
}

}  // namespace fedep
