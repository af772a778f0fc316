// How exact products on a GPU are: a choice that users make, also in builds without CUDA.
#pragma once

namespace fedep {

enum class ProductPrecision {
  tf32,     // one tensor-core product of 11-bit mantissas: fast
  float32,  // three of them that together are as exact as float
};

}  // namespace fedep
