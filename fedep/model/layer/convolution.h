// Convolution of images [height, width, in] with a kernel [kernel, kernel, in, out], by matrix
// products. A tap is one [in, out] slice of the kernel; a tap that meets only padding wherever it
// is applied is dead: it is neither read nor written.
//
//   Convolution conv(same_convolution(6, 6, 64, 128, 3, 2));
//   conv.forward(n, x, w, y);                       // x [n, 6, 6, 64], y [n, 3, 3, 128]
//   conv.weight_gradient(n, x, dy, 0.0f, dw);
//   conv.input_gradient(n, dy, w, dx);
//
// Three ways, chosen by the shape. Where maps are small, one product per live tap over only those
// positions whose input is not padding: on 2x2 maps that is 4/9 of the arithmetic, on 1x1 maps 1/9.
// Where they are large and the kernel is 3x3 at stride 1: Winograd's. Else neighbourhoods are
// copied out into rows (im2col) of one product, a few images at a time, so that the rows stay in
// the cache.
#pragma once

#include <cstddef>
#include <vector>

#include "fedep/model/layer/winograd.h"
#include "fedep/model/model.h"

namespace fedep {

struct ConvolutionShape {
  std::size_t height = 0, width = 0, in = 0;
  std::size_t out_height = 0, out_width = 0, out = 0;
  std::size_t kernel = 0, stride = 0;
  std::size_t pad_top = 0, pad_left = 0;  // as much as needed comes after

  std::size_t input_size() const { return height * width * in; }
  std::size_t positions() const { return out_height * out_width; }
  std::size_t output_size() const { return positions() * out; }
  std::size_t weights() const { return kernel * kernel * in * out; }
};

// Output of ceil(size / stride); what padding does not divide evenly goes after (TensorFlow's
// SAME).
ConvolutionShape same_convolution(std::size_t height, std::size_t width, std::size_t in,
                                  std::size_t out, std::size_t kernel, std::size_t stride);
// No padding.
ConvolutionShape valid_convolution(std::size_t height, std::size_t width, std::size_t in,
                                   std::size_t out, std::size_t kernel, std::size_t stride);

class Convolution {
 public:
  explicit Convolution(const ConvolutionShape& shape);

  const ConvolutionShape& shape() const { return shape_; }
  // Coordinates of live taps within the kernel.
  std::vector<Range> live() const;

  void forward(std::size_t n, const float* x, const float* w, float* y);
  void input_gradient(std::size_t n, const float* dy, const float* w, float* dx);
  // dw = keep dw + Σ_examples of the weights' gradient, on live taps.
  void weight_gradient(std::size_t n, const float* x, const float* dy, float keep, float* dw);
  // sum += Σ_examples of the squared weights' gradient, on live taps.
  void add_squared_weight_gradient(std::size_t n, const float* x, const float* dy, float* sum);

 private:
  struct Tap {
    std::size_t index = 0;  // in the kernel, row by row
    // Positions that meet through it: the i-th output the i-th input.
    std::vector<std::size_t> outputs, inputs;
    bool all_outputs = false;  // every output position, in order
    bool all_inputs = false;   // every input position, in order

    std::size_t pairs() const { return outputs.size(); }
  };

  enum class Way { taps, winograd, rows };

  Way way() const;
  std::size_t row_length() const { return shape_.kernel * shape_.kernel * shape_.in; }
  std::size_t images_at_once(std::size_t n) const;
  void copy_out_rows(std::size_t n, const float* x);
  void add_rows_back(std::size_t n, float* dx) const;
  const float* gather_inputs(const Tap& tap, std::size_t n, const float* x);
  const float* gather_outputs(const Tap& tap, std::size_t n, const float* y);
  void square_by_taps(std::size_t n, const float* x, const float* dy, float* sum);
  void square_by_rows(std::size_t n, const float* x, const float* dy, float* sum);

  ConvolutionShape shape_;
  std::vector<Tap> taps_;  // live ones
  Way way_;
  Winograd winograd_;
  std::vector<float> rows_;    // im2col, or gathered inputs
  std::vector<float> others_;  // gathered outputs, or one example's gradient
  std::vector<float> product_;
};

}  // namespace fedep
