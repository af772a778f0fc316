// Kernels behind DeviceVector. Plain C++17: nvcc reads this. All pointers are to GPU memory; every
// function enqueues on `stream` and returns.
#pragma once

#include <cstddef>

struct CUstream_st;

namespace fedep {

using CudaStream = CUstream_st*;  // cudaStream_t

// Whether the GPU can run what this build compiled.
bool kernels_fit_device();

enum class ZipOp { add, subtract, multiply, divide };
// out[i] = a[i] op b[i]; out may be a or b.
void launch_zip(ZipOp op, const float* a, const float* b, float* out, std::size_t n,
                CudaStream stream);

enum class MapOp {
  times,  // p x
  over,   // x / p
  plus,   // x + p
  log,
  sqrt,
  clamp,  // to [p, q]
};
void launch_map(MapOp op, const float* a, float p, float q, float* out, std::size_t n,
                CudaStream stream);

void launch_fill(float* out, float value, std::size_t n, CudaStream stream);

// Bytes of scratch that any of the reductions below needs.
std::size_t reduction_scratch();
void launch_sum(const float* a, std::size_t n, void* scratch, double* out, CudaStream stream);
void launch_dot(const float* a, const float* b, std::size_t n, void* scratch, double* out,
                CudaStream stream);
// NaN if one is NaN, +infinity if there is none.
void launch_min(const float* a, std::size_t n, void* scratch, float* out, CudaStream stream);
void launch_all_finite(const float* a, std::size_t n, void* scratch, int* out, CudaStream stream);

}  // namespace fedep
