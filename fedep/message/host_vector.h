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
#include <limits>
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

namespace detail {

// Σ term(i) in double: eight running sums, which a compiler can keep in vector registers, added up in
// the end. Their order is fixed, so the bits depend on the values alone.
template <class Term>
double sum_of(std::size_t size, Term term) {
  constexpr std::size_t kLanes = 8;
  double lanes[kLanes] = {};
  std::size_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    for (std::size_t j = 0; j < kLanes; ++j) lanes[j] += term(i + j);
  }
  for (; i < size; ++i) lanes[0] += term(i);
  double total = 0;
  for (const double lane : lanes) total += lane;
  return total;
}

}  // namespace detail

template <class T>
double sum(const HostVector<T>& a) {
  return detail::sum_of(a.size(), [&](std::size_t i) { return double(a[i]); });
}
template <class T>
double dot(const HostVector<T>& a, const HostVector<T>& b) {
  check_same_size("dot", "right operand", a.size(), b.size());
  return detail::sum_of(a.size(), [&](std::size_t i) { return double(a[i]) * double(b[i]); });
}
// Smallest element; NaN if any element is NaN, +infinity if there is none.
template <class T>
double min_value(const HostVector<T>& a) {
  T least = T(HUGE_VAL), not_a_number = T(0);
  for (const T x : a) {
    least = x < least ? x : least;
    not_a_number = x == x ? not_a_number : x;
  }
  return double(not_a_number == not_a_number ? least : not_a_number);
}
template <class T>
bool all_finite(const HostVector<T>& a) {
  // Without an early end, so that the loop vectorises.
  T outside = T(0);
  for (const T x : a) {
    outside = std::fabs(x) <= std::numeric_limits<T>::max() ? outside : T(1);
  }
  return outside == T(0);
}

}  // namespace fedep
