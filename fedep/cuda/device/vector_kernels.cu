#include "fedep/cuda/device/vector_kernels.h"

#include <cuda_runtime.h>

#include "fedep/cuda/device/reduce.cuh"

namespace fedep {
namespace {

constexpr unsigned kThreads = 256;

__device__ std::size_t first_index() { return std::size_t(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ std::size_t index_stride() { return std::size_t(gridDim.x) * blockDim.x; }

template <ZipOp op>
__global__ void zip_kernel(const float* a, const float* b, float* out, std::size_t n) {
  for_each_group(first_index(), index_stride(), n, [&](const Group& group) {
    float x[kAtOnce], y[kAtOnce];
    group.each([&](int j, std::size_t i) { x[j] = a[i], y[j] = b[i]; });
    group.each([&](int j, std::size_t i) {
      if (op == ZipOp::add) out[i] = x[j] + y[j];
      if (op == ZipOp::subtract) out[i] = x[j] - y[j];
      if (op == ZipOp::multiply) out[i] = x[j] * y[j];
      if (op == ZipOp::divide) out[i] = x[j] / y[j];
    });
  });
}

template <MapOp op>
__global__ void map_kernel(const float* a, float p, float q, float* out, std::size_t n) {
  for (std::size_t i = first_index(); i < n; i += index_stride()) {
    const float x = a[i];
    if (op == MapOp::times) out[i] = p * x;
    if (op == MapOp::over) out[i] = x / p;
    if (op == MapOp::plus) out[i] = x + p;
    if (op == MapOp::log) out[i] = logf(x);
    if (op == MapOp::sqrt) out[i] = sqrtf(x);
    if (op == MapOp::clamp) out[i] = x < p ? p : (x > q ? q : x);
  }
}

__global__ void fill_kernel(float* out, float value, std::size_t n) {
  for (std::size_t i = first_index(); i < n; i += index_stride()) out[i] = value;
}

struct Sum {
  using Value = double;
  const float* a;
  __device__ double zero() const { return 0; }
  __device__ float load(int, std::size_t i) const { return a[i]; }
  __device__ void take(double& v, float x) const { v += double(x); }
  __device__ void merge(double& v, double w) const { v += w; }
};

struct Dot {
  using Value = double;
  const float* a;
  const float* b;
  __device__ double zero() const { return 0; }
  __device__ float2 load(int, std::size_t i) const { return {a[i], b[i]}; }
  __device__ void take(double& v, float2 pair) const { v += double(pair.x) * double(pair.y); }
  __device__ void merge(double& v, double w) const { v += w; }
};

struct Min {
  using Value = float;
  const float* a;
  __device__ float zero() const { return __int_as_float(0x7f800000); }  // infinity
  __device__ float load(int, std::size_t i) const { return a[i]; }
  __device__ void take(float& v, float x) const { merge(v, x); }
  __device__ void merge(float& v, float w) const {
    if (w < v || isnan(w)) v = isnan(v) ? v : w;
  }
};

struct AllFinite {
  using Value = int;
  const float* a;
  __device__ int zero() const { return 1; }
  __device__ float load(int, std::size_t i) const { return a[i]; }
  __device__ void take(int& v, float x) const { v &= isfinite(x) ? 1 : 0; }
  __device__ void merge(int& v, int w) const { v &= w; }
};

template <ZipOp op>
void zip(const float* a, const float* b, float* out, std::size_t n, cudaStream_t stream) {
  zip_kernel<op><<<blocks_for(n, kThreads), kThreads, 0, stream>>>(a, b, out, n);
}

template <MapOp op>
void map(const float* a, float p, float q, float* out, std::size_t n, cudaStream_t stream) {
  map_kernel<op><<<blocks_for(n, kThreads), kThreads, 0, stream>>>(a, p, q, out, n);
}

}  // namespace

bool kernels_fit_device() {
  cudaFuncAttributes attributes;
  const bool fits = cudaFuncGetAttributes(&attributes, fill_kernel) == cudaSuccess;
  if (!fits) cudaGetLastError();
  return fits;
}

void launch_zip(ZipOp op, const float* a, const float* b, float* out, std::size_t n,
                CudaStream stream) {
  if (n == 0) return;
  switch (op) {
    case ZipOp::add:
      zip<ZipOp::add>(a, b, out, n, stream);
      break;
    case ZipOp::subtract:
      zip<ZipOp::subtract>(a, b, out, n, stream);
      break;
    case ZipOp::multiply:
      zip<ZipOp::multiply>(a, b, out, n, stream);
      break;
    case ZipOp::divide:
      zip<ZipOp::divide>(a, b, out, n, stream);
      break;
  }
  gpu::check_launch("zip");
}

void launch_map(MapOp op, const float* a, float p, float q, float* out, std::size_t n,
                CudaStream stream) {
  if (n == 0) return;
  switch (op) {
    case MapOp::times:
      map<MapOp::times>(a, p, q, out, n, stream);
      break;
    case MapOp::over:
      map<MapOp::over>(a, p, q, out, n, stream);
      break;
    case MapOp::plus:
      map<MapOp::plus>(a, p, q, out, n, stream);
      break;
    case MapOp::log:
      map<MapOp::log>(a, p, q, out, n, stream);
      break;
    case MapOp::sqrt:
      map<MapOp::sqrt>(a, p, q, out, n, stream);
      break;
    case MapOp::clamp:
      map<MapOp::clamp>(a, p, q, out, n, stream);
      break;
  }
  gpu::check_launch("map");
}

void launch_fill(float* out, float value, std::size_t n, CudaStream stream) {
  if (n == 0) return;
  fill_kernel<<<blocks_for(n, kThreads), kThreads, 0, stream>>>(out, value, n);
  gpu::check_launch("fill");
}

std::size_t reduction_scratch() { return kReduceBlocks * sizeof(double); }

void launch_sum(const float* a, std::size_t n, void* scratch, double* out, CudaStream stream) {
  reduce("sum", Sum{a}, 1, n, scratch, out, stream);
}

void launch_dot(const float* a, const float* b, std::size_t n, void* scratch, double* out,
                CudaStream stream) {
  reduce("dot", Dot{a, b}, 1, n, scratch, out, stream);
}

void launch_min(const float* a, std::size_t n, void* scratch, float* out, CudaStream stream) {
  reduce("min", Min{a}, 1, n, scratch, out, stream);
}

void launch_all_finite(const float* a, std::size_t n, void* scratch, int* out, CudaStream stream) {
  reduce("all_finite", AllFinite{a}, 1, n, scratch, out, stream);
}

}  // namespace fedep
