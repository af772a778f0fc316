// One block of the residual network: two 3x3 convolutions, each after a norm and a rectifier, and a
// shortcut around both.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "fedep/model/layer/convolution.h"
#include "fedep/model/layer/norm.h"
#include "fedep/model/network.h"

namespace fedep {

class ResidualBlock {
 public:
  // Input [height, width, in]; the shortcut is the identity if `in` = `out` and `stride` = 1, else
  // a normalised 1x1 convolution. Adds its tensors to `layout`.
  ResidualBlock(std::size_t height, std::size_t width, std::size_t in, std::size_t out,
                std::size_t stride, NormKind norm, const std::string& name, Layout& layout);

  const ConvolutionShape& first_shape() const { return conv1_.shape(); }
  const ConvolutionShape& last_shape() const { return conv2_.shape(); }
  void add_live(std::vector<Range>& ranges) const;

  void reserve(std::size_t n);
  // Gives back the block's output, valid until the next forward pass.
  const float* forward(const float* theta, std::size_t n, const float* x);
  // After forward() on the same x: d holds the derivative of the output and then that of x.
  // `scratch` has room for n inputs or outputs, whichever are larger.
  void backward(const float* theta, std::size_t n, const float* x, const GradientSink& sink,
                std::vector<float>& d, std::vector<float>& scratch);

 private:
  Convolution conv1_, conv2_;
  Norm norm1_, norm2_;
  std::optional<Convolution> shortcut_;
  std::optional<Norm> shortcut_norm_;
  std::size_t at1_, at2_, at_shortcut_ = 0;  // in the flat vector

  std::vector<float> norm1_out_, relu1_, conv1_out_, norm2_out_, relu2_, out_;
  std::vector<float> shortcut_out_, shortcut_norm_out_;
  std::vector<float> d_;
};

}  // namespace fedep
