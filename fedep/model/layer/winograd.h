// 3x3 convolutions at stride 1 with 16 multiplications for four outputs instead of 36 (Winograd's
// F(2x2, 3x3); Lavin and Gray 2016). Tiles d of 4x4 inputs, 2 apart, and the kernel g are
// transformed,
//
//   y = Aᵀ [(G g Gᵀ) ∘ (Bᵀ d B)] A,
//
// and at each of the 16 places the products over channels are one matrix product. The gradients are
// the transposes of these steps. Rounding errors stay those of direct sums, within a factor of two.
#pragma once

#include <cstddef>
#include <vector>

namespace fedep {

struct ConvolutionShape;

class Winograd {
 public:
  // 3x3, stride 1, outputs of even height and width, channels in multiples of 16.
  static bool takes(const ConvolutionShape& shape);

  // As the functions of Convolution, for all weights.
  void forward(const ConvolutionShape& s, std::size_t n, const float* x, const float* w, float* y);
  void input_gradient(const ConvolutionShape& s, std::size_t n, const float* dy, const float* w,
                      float* dx);
  void weight_gradient(const ConvolutionShape& s, std::size_t n, const float* x, const float* dy,
                       float keep, float* dw);

 private:
  std::size_t images_at_once(const ConvolutionShape& s, std::size_t n) const;

  // [16, tiles, channels] of some images; [16, in, out]
  std::vector<float> inputs_, outputs_, kernel_;
  std::vector<float> zeros_, spare_;  // a padding position to read, and one to write
};

}  // namespace fedep
