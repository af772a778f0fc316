#include "fedep/cuda/device/device_gauge.h"

#include <cstdint>

#include <cuda_runtime_api.h>

#include "fedep/cuda/device/device.h"
#include "fedep/cuda/device/launch.h"

namespace fedep {
namespace {

using gpu::check_call;

int current_device() {
  int device = 0;
  check_call(cudaGetDevice(&device), "cudaGetDevice");
  return device;
}

cudaMemPool_t pool() {
  cudaMemPool_t found = nullptr;
  check_call(cudaDeviceGetDefaultMemPool(&found, current_device()), "cudaDeviceGetDefaultMemPool");
  return found;
}

}  // namespace

DeviceTimer::DeviceTimer() {
  check_call(cudaEventCreate(&start_), "cudaEventCreate");
  check_call(cudaEventCreate(&stop_), "cudaEventCreate");
}

DeviceTimer::~DeviceTimer() {
  if (start_ != nullptr) cudaEventDestroy(start_);
  if (stop_ != nullptr) cudaEventDestroy(stop_);
}

void DeviceTimer::start() {
  stopped_ = false;
  check_call(cudaEventRecord(start_, device_stream()), "cudaEventRecord");
}

void DeviceTimer::stop() {
  stopped_ = true;
  check_call(cudaEventRecord(stop_, device_stream()), "cudaEventRecord");
}

double DeviceTimer::seconds() const {
  if (!stopped_) return 0;
  check_call(cudaEventSynchronize(stop_), "cudaEventSynchronize");
  float milliseconds = 0;
  check_call(cudaEventElapsedTime(&milliseconds, start_, stop_), "cudaEventElapsedTime");
  return double(milliseconds) * 1e-3;
}

double measured_copy_rate() {
  constexpr std::size_t kBytes = std::size_t(1) << 30;
  constexpr int kTimes = 20;
  DeviceArray<std::uint8_t> from(kBytes), to(kBytes);
  from.zero();
  copy_on_device(to.data(), from.data(), kBytes);
  DeviceTimer timer;
  timer.start();
  for (int i = 0; i < kTimes; ++i) copy_on_device(to.data(), from.data(), kBytes);
  timer.stop();
  return 2.0 * double(kBytes) * kTimes / timer.seconds();
}

double nominal_tf32_rate() {
  int processors = 0, kilohertz = 0;
  check_call(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, current_device()),
             "cudaDeviceGetAttribute");
  check_call(cudaDeviceGetAttribute(&kilohertz, cudaDevAttrClockRate, current_device()),
             "cudaDeviceGetAttribute");
  // Four tensor cores in a multiprocessor, each 256 multiply-adds of TF32 in a cycle.
  return 2.0 * 4 * 256 * double(processors) * double(kilohertz) * 1e3;
}

std::size_t peak_device_memory() {
  std::uint64_t most = 0;
  check_call(cudaMemPoolGetAttribute(pool(), cudaMemPoolAttrUsedMemHigh, &most),
             "cudaMemPoolGetAttribute");
  return std::size_t(most);
}

void reset_peak_device_memory() {
  std::uint64_t zero = 0;  // the only value that may be set
  check_call(cudaMemPoolSetAttribute(pool(), cudaMemPoolAttrUsedMemHigh, &zero),
             "cudaMemPoolSetAttribute");
}

}  // namespace fedep
