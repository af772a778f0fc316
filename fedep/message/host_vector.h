// A vector of numbers in main memory: the storage of messages on the server, on the wire and on
// disk.
//
//   HostVector<float> eta(d, 0.f);
//   eta = eta + 2.f * other;          // element by element, sizes must agree
//
// It satisfies Storage (storage.h), the small concept against which Gaussian arithmetic is written
// once.
#pragma once

#include <cmath>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

#include "fedep/message/check.h"

namespace fedep {

template <class T>
class HostVector {
 public:
  using Scalar = T;

  HostVector() = default;
  explicit HostVector(std::size_t size, T value = T(0)) : values_(size, value) {}
  HostVector(std::initializer_list<T> values) : values_(values) {}
  explicit HostVector(std::vector<T> values) : values_(std::move(values)) {}

  std::size_t size() const { return values_.size(); }
  T operator[](std::size_t i) const { return values_[i]; }
  T& operator[](std::size_t i) { return values_[i]; }
  std::span<const T> span() const { return values_; }
  std::span<T> span() { return values_; }
  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }

  bool operator==(const HostVector&) const = default;

 private:
  std::vector<T> values_;
};

namespace detail {

template <class T, class Op>
HostVector<T> map(const HostVector<T>& a, Op op) {
  HostVector<T> out(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) out[i] = op(a[i]);
  return out;
}

template <class T, class Op>
HostVector<T> zip(const char* name, const HostVector<T>& a, const HostVector<T>& b, Op op) {
  check_same_size(name, "right operand", a.size(), b.size());
  HostVector<T> out(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) out[i] = op(a[i], b[i]);
  return out;
}

}  // namespace detail

template <class T>
HostVector<T> operator+(const HostVector<T>& a, const HostVector<T>& b) {
  return detail::zip("operator+", a, b, [](T x, T y) { return x + y; });
}
template <class T>
HostVector<T> operator-(const HostVector<T>& a, const HostVector<T>& b) {
  return detail::zip("operator-", a, b, [](T x, T y) { return x - y; });
}
template <class T>
HostVector<T> operator*(const HostVector<T>& a, const HostVector<T>& b) {
  return detail::zip("operator*", a, b, [](T x, T y) { return x * y; });
}
template <class T>
HostVector<T> operator/(const HostVector<T>& a, const HostVector<T>& b) {
  return detail::zip("operator/", a, b, [](T x, T y) { return x / y; });
}
template <class T>
HostVector<T> operator*(std::type_identity_t<T> s, const HostVector<T>& a) {
  return detail::map(a, [s](T x) { return s * x; });
}
template <class T>
HostVector<T> operator/(const HostVector<T>& a, std::type_identity_t<T> s) {
  return detail::map(a, [s](T x) { return x / s; });
}
template <class T>
HostVector<T> operator+(const HostVector<T>& a, std::type_identity_t<T> s) {
  return detail::map(a, [s](T x) { return x + s; });
}
template <class T>
HostVector<T> log(const HostVector<T>& a) {
  return detail::map(a, [](T x) { return std::log(x); });
}
template <class T>
HostVector<T> sqrt(const HostVector<T>& a) {
  return detail::map(a, [](T x) { return std::sqrt(x); });
}
template <class T>
HostVector<T> clamp(const HostVector<T>& a, std::type_identity_t<T> low,
                    std::type_identity_t<T> high) {
  return detail::map(a, [low, high](T x) { return x < low ? low : (x > high ? high : x); });
}
template <class T>
HostVector<T> constant_like(const HostVector<T>& a, std::type_identity_t<T> value) {
  return HostVector<T>(a.size(), value);
}

// Sums run in double and in index order, so their bits depend on the values alone.
template <class T>
double sum(const HostVector<T>& a) {
  double total = 0;
  for (const T x : a) total += x;
  return total;
}
template <class T>
double dot(const HostVector<T>& a, const HostVector<T>& b) {
  check_same_size("dot", "right operand", a.size(), b.size());
  double total = 0;
  for (std::size_t i = 0; i < a.size(); ++i) total += double(a[i]) * double(b[i]);
  return total;
}
// Smallest element; NaN if any element is NaN, +infinity if there is none.
template <class T>
double min_value(const HostVector<T>& a) {
  double least = HUGE_VAL;
  for (const T x : a) {
    if (!(x >= least)) least = x;
    if (std::isnan(x)) return x;
  }
  return least;
}
template <class T>
bool all_finite(const HostVector<T>& a) {
  for (const T x : a) {
    if (!std::isfinite(x)) return false;
  }
  return true;
}

}  // namespace fedep
