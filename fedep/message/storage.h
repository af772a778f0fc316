// What Gaussian arithmetic asks of the memory its vectors live in. HostVector satisfies it in core;
// a view of a torch tensor satisfies it where torch is linked.
#pragma once

#include <concepts>
#include <cstddef>

namespace fedep {

template <class V>
concept Storage = requires(const V& a, typename V::Scalar s) {
  { a.size() } -> std::convertible_to<std::size_t>;
  { a + a } -> std::same_as<V>;
  { a - a } -> std::same_as<V>;
  { a* a } -> std::same_as<V>;
  { a / a } -> std::same_as<V>;
  { s* a } -> std::same_as<V>;
  { a / s } -> std::same_as<V>;
  { a + s } -> std::same_as<V>;
  { log(a) } -> std::same_as<V>;
  { sqrt(a) } -> std::same_as<V>;
  { clamp(a, s, s) } -> std::same_as<V>;
  { constant_like(a, s) } -> std::same_as<V>;
  { sum(a) } -> std::convertible_to<double>;
  { dot(a, a) } -> std::convertible_to<double>;
  { min_value(a) } -> std::convertible_to<double>;
  { all_finite(a) } -> std::convertible_to<bool>;
};

// Whose elements the processor can look at. Only these have a full family.
template <class V>
concept InMainMemory = Storage<V> && requires(const V& a) {
  a.span();
};

}  // namespace fedep
