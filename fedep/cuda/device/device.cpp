#include "fedep/cuda/device/device.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <thread>

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "fedep/cuda/device/launch.h"
#include "fedep/cuda/device/vector_kernels.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

using gpu::check_call;

std::string no_gpu(std::string_view reason) { return fmt::format("no usable GPU: {}", reason); }

cudaMemPool_t default_pool() {
  int device = 0;
  check_call(cudaGetDevice(&device), "cudaGetDevice");
  cudaMemPool_t pool = nullptr;
  check_call(cudaDeviceGetDefaultMemPool(&pool, device), "cudaDeviceGetDefaultMemPool");
  return pool;
}

// What was freed stays with the pool for the next allocation.
cudaStream_t make_stream() {
  std::uint64_t keep_all = UINT64_MAX;
  check_call(cudaMemPoolSetAttribute(default_pool(), cudaMemPoolAttrReleaseThreshold, &keep_all),
             "cudaMemPoolSetAttribute");
  cudaStream_t stream = nullptr;
  // What everybody waits for goes before what runs beside it (side_stream.h).
  int least = 0, greatest = 0;
  check_call(cudaDeviceGetStreamPriorityRange(&least, &greatest),
             "cudaDeviceGetStreamPriorityRange");
  check_call(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest),
             "cudaStreamCreate");
  return stream;
}

// Small copies to the GPU go through page-locked memory, so that the caller's is free at once and
// nobody waits for the GPU.
class Staging {
 public:
  static constexpr std::size_t kLargest = std::size_t(1) << 18;

  void copy(void* to, const void* from, std::size_t bytes) {
    if (buffer_ == nullptr) buffer_ = static_cast<std::byte*>(pinned_allocate(kBytes));
    if (used_ + bytes > kBytes) {
      wait_for_device();
      used_ = 0;
    }
    std::memcpy(buffer_ + used_, from, bytes);
    check_call(cudaMemcpyAsync(to, buffer_ + used_, bytes, cudaMemcpyHostToDevice, device_stream()),
               "cudaMemcpyAsync");
    used_ += (bytes + 15) / 16 * 16;
  }

 private:
  static constexpr std::size_t kBytes = std::size_t(1) << 22;

  std::byte* buffer_ = nullptr;  // never freed: the process ends with it
  std::size_t used_ = 0;
};

}  // namespace

namespace gpu {

void check_call(int error, const char* call) {
  if (error == cudaSuccess) return;
  cudaGetLastError();  // the next call starts clean
  throw RunError(fmt::format("GPU: {} failed: {}", call, cudaGetErrorString(cudaError_t(error))));
}

void check_launch(const char* kernel) { check_call(cudaGetLastError(), kernel); }

void allow_shared_memory(const void* kernel, int bytes) {
  check_call(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
             "cudaFuncSetAttribute");
}

}  // namespace gpu

std::string device_problem() {
  int driver = 0;
  if (cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0) {
    return no_gpu("there is no NVIDIA driver on this machine");
  }
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess) {
    cudaGetLastError();
    return no_gpu(cudaGetErrorString(error));
  }
  if (count == 0) return no_gpu("the driver shows none");
  if (const cudaError_t error = cudaFree(nullptr); error != cudaSuccess) {  // starts the device
    cudaGetLastError();
    return no_gpu(cudaGetErrorString(error));
  }
  if (!kernels_fit_device()) {
    return no_gpu(fmt::format("this build's kernels are not for {}", device_name()));
  }
  return "";
}

std::string device_name() {
  int device = 0;
  check_call(cudaGetDevice(&device), "cudaGetDevice");
  cudaDeviceProp properties;
  check_call(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  return properties.name;
}

std::size_t device_count() {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess) return std::size_t(count);
  cudaGetLastError();  // the next call starts clean
  return 0;
}

void use_device(std::size_t index) { check_call(cudaSetDevice(int(index)), "cudaSetDevice"); }

std::string device_address() {
  int device = 0;
  check_call(cudaGetDevice(&device), "cudaGetDevice");
  std::array<char, 32> address{};
  check_call(cudaDeviceGetPCIBusId(address.data(), int(address.size()), device),
             "cudaDeviceGetPCIBusId");
  return address.data();
}

std::string device_software() {
  int driver = 0, runtime = 0;
  check_call(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  check_call(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  const auto text = [](int version) {  // 13020 is 13.2
    return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
  };
  return fmt::format("driver {}, runtime {}", text(driver), text(runtime));
}

std::size_t device_memory_free() {
  std::size_t free = 0, total = 0;
  check_call(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  std::uint64_t reserved = 0, used = 0;  // the pool holds what nobody uses
  check_call(cudaMemPoolGetAttribute(default_pool(), cudaMemPoolAttrReservedMemCurrent, &reserved),
             "cudaMemPoolGetAttribute");
  check_call(cudaMemPoolGetAttribute(default_pool(), cudaMemPoolAttrUsedMemCurrent, &used),
             "cudaMemPoolGetAttribute");
  return free + std::size_t(reserved - std::min(used, reserved));
}

CudaStream device_stream() {
  static const cudaStream_t stream = make_stream();
  return stream;
}

void wait_for_device() {
  check_call(cudaStreamSynchronize(device_stream()), "cudaStreamSynchronize");
}

void wait_for_device(const std::function<void()>& meanwhile) {
  constexpr std::chrono::microseconds kPause{200};
  while (cudaStreamQuery(device_stream()) == cudaErrorNotReady) {
    meanwhile();
    std::this_thread::sleep_for(kPause);
  }
  cudaGetLastError();  // "not ready" is none
  wait_for_device();
}

void* device_allocate(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  void* memory = nullptr;
  if (const cudaError_t error = cudaMallocAsync(&memory, bytes, device_stream());
      error != cudaSuccess) {
    cudaGetLastError();
    throw RunError(
        fmt::format("GPU: cannot allocate {} bytes: {}", bytes, cudaGetErrorString(error)));
  }
  return memory;
}

void device_free(void* memory) noexcept {
  if (memory != nullptr) cudaFreeAsync(memory, device_stream());
}

void* pinned_allocate(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  void* memory = nullptr;
  if (const cudaError_t error = cudaMallocHost(&memory, bytes); error != cudaSuccess) {
    cudaGetLastError();
    throw RunError(fmt::format("cannot allocate {} bytes of page-locked memory: {}", bytes,
                               cudaGetErrorString(error)));
  }
  return memory;
}

void pinned_free(void* memory) noexcept {
  if (memory != nullptr) cudaFreeHost(memory);
}

void copy_to_device(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  static Staging staging;
  if (bytes <= Staging::kLargest) {
    staging.copy(to, from, bytes);
    return;
  }
  check_call(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, device_stream()),
             "cudaMemcpyAsync");
  wait_for_device();
}

void copy_to_host(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  check_call(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, device_stream()),
             "cudaMemcpyAsync");
  wait_for_device();
}

void copy_on_device(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  check_call(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, device_stream()),
             "cudaMemcpyAsync");
}

void zero_on_device(void* to, std::size_t bytes) {
  if (bytes == 0) return;
  check_call(cudaMemsetAsync(to, 0, bytes, device_stream()), "cudaMemsetAsync");
}

}  // namespace fedep
