// A vector of floats in GPU memory: the Storage (message/storage.h) of messages that never leave
// the device. Copies copy on the device; operators enqueue one kernel each and return at once;
// reductions wait for their number and run in a fixed order, in double.
//
//   DeviceVector eta = to_device(host_eta);
//   const Gaussian<DeviceVector> cavity = quotient(global, factor);
#pragma once

#include <cstddef>
#include <span>

#include "fedep/cuda/device/device.h"
#include "fedep/message/gaussian.h"

namespace fedep {

class DeviceVector {
 public:
  using Scalar = float;

  DeviceVector() = default;
  explicit DeviceVector(std::size_t size) : values_(size) {}  // not initialised
  DeviceVector(const DeviceVector& other);
  DeviceVector& operator=(const DeviceVector& other);
  DeviceVector(DeviceVector&&) noexcept = default;
  DeviceVector& operator=(DeviceVector&&) noexcept = default;

  std::size_t size() const { return values_.size(); }
  float* data() { return values_.data(); }
  const float* data() const { return values_.data(); }

 private:
  DeviceArray<float> values_;
};

DeviceVector operator+(const DeviceVector& a, const DeviceVector& b);
DeviceVector operator-(const DeviceVector& a, const DeviceVector& b);
DeviceVector operator*(const DeviceVector& a, const DeviceVector& b);
DeviceVector operator/(const DeviceVector& a, const DeviceVector& b);
DeviceVector operator*(float s, const DeviceVector& a);
DeviceVector operator/(const DeviceVector& a, float s);
DeviceVector operator+(const DeviceVector& a, float s);
DeviceVector log(const DeviceVector& a);
DeviceVector sqrt(const DeviceVector& a);
DeviceVector clamp(const DeviceVector& a, float low, float high);
DeviceVector constant_like(const DeviceVector& a, float value);
double sum(const DeviceVector& a);
double dot(const DeviceVector& a, const DeviceVector& b);
double min_value(const DeviceVector& a);  // NaN if one is NaN
bool all_finite(const DeviceVector& a);

DeviceVector to_device(const HostVector<float>& values);
HostVector<float> to_host(const DeviceVector& values);

using DeviceMessage = Gaussian<DeviceVector>;
DeviceMessage to_device(const Message& message);
Message to_host(const DeviceMessage& message);

}  // namespace fedep
