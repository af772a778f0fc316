// What a step asks of a machine for one example, counted from a model's shapes. Each model's file
// counts its own layers.
//
//   StepWork work;
//   work.add_convolution(valid_convolution(28, 28, 1, 32, 3, 1));
//   work.add_dense(9216, 128);
#pragma once

#include <cstddef>

namespace fedep {

struct ConvolutionShape;  // layer/convolution.h

struct StepWork {
  std::size_t multiply_adds = 0;  // forward, padding left out
  std::size_t activations = 0;    // floats that layers read and write, both passes

  void add_convolution(const ConvolutionShape& shape);
  void add_dense(std::size_t in, std::size_t out);
  void add_norm(std::size_t size);
  void add_pool(std::size_t in, std::size_t out);
};

}  // namespace fedep
