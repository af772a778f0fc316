#include "fedep/cuda/device/device_vector.h"

#include <cmath>

#include "fedep/cuda/device/vector_kernels.h"
#include "fedep/message/check.h"

namespace fedep {
namespace {

static_assert(Storage<DeviceVector>);

DeviceVector zip(const char* name, ZipOp op, const DeviceVector& a, const DeviceVector& b) {
  check_same_size(name, "right operand", a.size(), b.size());
  DeviceVector out(a.size());
  launch_zip(op, a.data(), b.data(), out.data(), a.size(), device_stream());
  return out;
}

DeviceVector map(MapOp op, const DeviceVector& a, float p = 0, float q = 0) {
  DeviceVector out(a.size());
  launch_map(op, a.data(), p, q, out.data(), a.size(), device_stream());
  return out;
}

// What a reduction leaves on the GPU, here.
template <class T, class Launch>
T reduced(Launch launch) {
  DeviceArray<std::byte> scratch(reduction_scratch());
  DeviceArray<T> out(1);
  launch(scratch.data(), out.data());
  T value;
  copy_to_host(&value, out.data(), sizeof(T));
  return value;
}

}  // namespace

DeviceVector::DeviceVector(const DeviceVector& other) : values_(other.size()) {
  copy_on_device(data(), other.data(), size() * sizeof(float));
}

DeviceVector& DeviceVector::operator=(const DeviceVector& other) {
  if (this == &other) return *this;
  if (size() != other.size()) values_ = DeviceArray<float>(other.size());
  copy_on_device(data(), other.data(), size() * sizeof(float));
  return *this;
}

DeviceVector operator+(const DeviceVector& a, const DeviceVector& b) {
  return zip("operator+", ZipOp::add, a, b);
}
DeviceVector operator-(const DeviceVector& a, const DeviceVector& b) {
  return zip("operator-", ZipOp::subtract, a, b);
}
DeviceVector operator*(const DeviceVector& a, const DeviceVector& b) {
  return zip("operator*", ZipOp::multiply, a, b);
}
DeviceVector operator/(const DeviceVector& a, const DeviceVector& b) {
  return zip("operator/", ZipOp::divide, a, b);
}
DeviceVector operator*(float s, const DeviceVector& a) { return map(MapOp::times, a, s); }
DeviceVector operator/(const DeviceVector& a, float s) { return map(MapOp::over, a, s); }
DeviceVector operator+(const DeviceVector& a, float s) { return map(MapOp::plus, a, s); }
DeviceVector log(const DeviceVector& a) { return map(MapOp::log, a); }
DeviceVector sqrt(const DeviceVector& a) { return map(MapOp::sqrt, a); }
DeviceVector clamp(const DeviceVector& a, float low, float high) {
  return map(MapOp::clamp, a, low, high);
}
DeviceVector constant_like(const DeviceVector& a, float value) {
  DeviceVector out(a.size());
  launch_fill(out.data(), value, a.size(), device_stream());
  return out;
}

double sum(const DeviceVector& a) {
  return reduced<double>([&](void* scratch, double* out) {
    launch_sum(a.data(), a.size(), scratch, out, device_stream());
  });
}
double dot(const DeviceVector& a, const DeviceVector& b) {
  check_same_size("dot", "right operand", a.size(), b.size());
  return reduced<double>([&](void* scratch, double* out) {
    launch_dot(a.data(), b.data(), a.size(), scratch, out, device_stream());
  });
}
double min_value(const DeviceVector& a) {
  return double(reduced<float>([&](void* scratch, float* out) {
    launch_min(a.data(), a.size(), scratch, out, device_stream());
  }));
}
bool all_finite(const DeviceVector& a) {
  return reduced<int>([&](void* scratch, int* out) {
           launch_all_finite(a.data(), a.size(), scratch, out, device_stream());
         }) != 0;
}

DeviceVector to_device(const HostVector<float>& values) {
  DeviceVector out(values.size());
  copy_to_device(out.data(), values.span().data(), values.size() * sizeof(float));
  return out;
}

HostVector<float> to_host(const DeviceVector& values) {
  HostVector<float> out(values.size());
  copy_to_host(out.span().data(), values.data(), values.size() * sizeof(float));
  return out;
}

DeviceMessage to_device(const Message& message) {
  DeviceVector eta = to_device(message.eta());
  if (message.isotropic()) return {std::move(eta), message.lambda_scalar()};
  return {std::move(eta), to_device(message.lambda_vector())};
}

Message to_host(const DeviceMessage& message) {
  HostVector<float> eta = to_host(message.eta());
  if (message.isotropic()) return {std::move(eta), message.lambda_scalar()};
  return {std::move(eta), to_host(message.lambda_vector())};
}

}  // namespace fedep
