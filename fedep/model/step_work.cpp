#include "fedep/model/step_work.h"

#include "fedep/model/layer/convolution.h"

namespace fedep {
namespace {

// Positions that a kernel of this size meets along one axis, over all outputs.
std::size_t pairs(std::size_t size, std::size_t outputs, std::size_t kernel, std::size_t stride,
                  std::size_t pad) {
  std::size_t count = 0;
  for (std::size_t out = 0; out < outputs; ++out) {
    for (std::size_t tap = 0; tap < kernel; ++tap) {
      const std::size_t at = out * stride + tap;
      count += at >= pad && at - pad < size;
    }
  }
  return count;
}

}  // namespace

void StepWork::add_convolution(const ConvolutionShape& s) {
  multiply_adds += pairs(s.height, s.out_height, s.kernel, s.stride, s.pad_top) *
                   pairs(s.width, s.out_width, s.kernel, s.stride, s.pad_left) * s.in * s.out;
  // Forward, derivative of the input, derivative of the weights: each touches both sides.
  activations += 3 * (s.input_size() + s.output_size());
}

void StepWork::add_dense(std::size_t in, std::size_t out) {
  multiply_adds += in * out;
  activations += 3 * (in + out);
}

// Read and written forward; read twice and written backward.
void StepWork::add_norm(std::size_t size) { activations += 5 * size; }

// Either side once forward and once backward.
void StepWork::add_pool(std::size_t in, std::size_t out) { activations += 2 * (in + out); }

}  // namespace fedep
