// A message: a Gaussian in natural coordinates,
//
//   q(theta) ∝ exp( eta·theta - ½ Σ_i lambda_i theta_i² ),     mean = eta / lambda,  variance = 1 / lambda.
//
// Multiplying densities adds (eta, lambda), dividing subtracts, raising to a power scales (Guo+23
// Sec. 2.2.1, footnote). lambda may be zero or negative in factors and deltas: those are messages
// too, only not proper distributions. What needs a proper one (mean, variance, KL, entropy,
// sampling) checks and throws.
//
//   using Q = Gaussian<HostVector<double>>;
//   const Q cavity = quotient(global, factor);
//   if (is_proper(cavity)) use(mean(cavity));
//
// lambda is one number (isotropic family: it alone travels beside eta), a vector (diagonal family) or a
// symmetric matrix (full family; then ½ θᵀΛθ stands above, and the mean is Λ⁻¹ eta). Mixing two of them
// gives a message of the larger family.
#pragma once

#include <cmath>
#include <cstddef>
#include <numbers>
#include <span>
#include <string_view>
#include <utility>
#include <variant>

#include "fedep/message/check.h"
#include "fedep/message/full_precision.h"
#include "fedep/message/host_vector.h"
#include "fedep/message/packed.h"
#include "fedep/message/storage.h"

namespace fedep {

enum class Family { isotropic, diagonal, full };

// Numbers that lambda is stored and sent as.
constexpr std::size_t lambda_size(Family family, std::size_t dimension) {
  switch (family) {
    case Family::isotropic:
      return 1;
    case Family::diagonal:
      return dimension;
    case Family::full:
      break;
  }
  return packed_size(dimension);
}

template <Storage V>
class Gaussian {
 public:
  using Scalar = typename V::Scalar;

  Gaussian() : lambda_(Scalar(0)) {}
  Gaussian(V eta, Scalar lambda) : eta_(std::move(eta)), lambda_(lambda) {}
  Gaussian(V eta, V lambda) : eta_(std::move(eta)), lambda_(std::move(lambda)) {
    check_same_size("Gaussian", "lambda", eta_.size(), lambda_vector().size());
  }

  Gaussian(V eta, Packed<V> lambda) : eta_(std::move(eta)), lambda_(std::move(lambda)) {
    check_same_size("Gaussian", "lambda", packed_size(eta_.size()),
                    lambda_packed().elements.size());
  }

  std::size_t size() const { return eta_.size(); }
  Family family() const { return Family(lambda_.index()); }
  bool isotropic() const { return family() == Family::isotropic; }
  bool full() const { return family() == Family::full; }

  const V& eta() const { return eta_; }
  V& eta() { return eta_; }
  Scalar lambda_scalar() const { return std::get<Scalar>(lambda_); }
  Scalar& lambda_scalar() { return std::get<Scalar>(lambda_); }
  const V& lambda_vector() const { return std::get<V>(lambda_); }
  V& lambda_vector() { return std::get<V>(lambda_); }
  const Packed<V>& lambda_packed() const { return std::get<Packed<V>>(lambda_); }
  Packed<V>& lambda_packed() { return std::get<Packed<V>>(lambda_); }
  // The diagonal written out, whichever of the mean-field families this is.
  V lambda_full() const {
    return isotropic() ? constant_like(eta_, lambda_scalar()) : lambda_vector();
  }

  // lambda as it is stored and sent: lambda_size() elements. Host memory only.
  std::span<const Scalar> lambda_span() const {
    if (isotropic()) return {&std::get<Scalar>(lambda_), 1};
    return full() ? lambda_packed().elements.span() : lambda_vector().span();
  }
  std::span<Scalar> lambda_span() {
    if (isotropic()) return {&std::get<Scalar>(lambda_), 1};
    return full() ? lambda_packed().elements.span() : lambda_vector().span();
  }

  bool operator==(const Gaussian&) const = default;

 private:
  V eta_;
  std::variant<Scalar, V, Packed<V>> lambda_;  // in the order of Family
};

// The type of every message that a round moves about: float32 in main memory.
using Message = Gaussian<HostVector<float>>;

template <Storage V>
Gaussian<V> flat_like(const V& shape, Family family) {
  V zero = constant_like(shape, typename V::Scalar(0));
  if (family == Family::isotropic) return {std::move(zero), typename V::Scalar(0)};
  if constexpr (InMainMemory<V>) {
    if (family == Family::full) return {std::move(zero), Packed<V>{V(packed_size(shape.size()))}};
  }
  V lambda = zero;
  return {std::move(zero), std::move(lambda)};
}

template <Storage V>
Gaussian<V> from_mean(const V& mean, typename V::Scalar lambda) {
  return {lambda * mean, lambda};
}

template <Storage V>
Gaussian<V> from_mean(const V& mean, V lambda) {
  V eta = lambda * mean;
  return {std::move(eta), std::move(lambda)};
}

template <Storage V>
Gaussian<V> to_diagonal(const Gaussian<V>& q) {
  return {q.eta(), q.lambda_full()};
}

// The same distribution as one of the full family.
template <InMainMemory V>
Gaussian<V> to_full(const Gaussian<V>& q) {
  if (q.full()) return q;
  Gaussian<V> out = flat_like(q.eta(), Family::full);
  out.eta() = q.eta();
  for (std::size_t i = 0; i < q.size(); ++i) {
    out.lambda_packed().elements[packed_index(i, i)] =
        q.isotropic() ? q.lambda_scalar() : q.lambda_vector()[i];
  }
  return out;
}

// The same distribution in this family, which must not be smaller than its own.
template <InMainMemory V>
Gaussian<V> in_family(Gaussian<V> q, Family family) {
  if (q.family() == family) return q;
  if (q.family() > family) fail("in_family", "family", "at least as large as the message's", "not");
  return family == Family::full ? to_full(q) : to_diagonal(q);
}

namespace detail {

// op on eta and on lambda, whose families may differ.
template <Storage V, class Op>
Gaussian<V> combine(const Gaussian<V>& a, const Gaussian<V>& b, Op op) {
  V eta = op(a.eta(), b.eta());
  if (a.isotropic() && b.isotropic()) {
    return {std::move(eta), typename V::Scalar(op(a.lambda_scalar(), b.lambda_scalar()))};
  }
  if constexpr (InMainMemory<V>) {
    if (a.full() && b.full()) {
      return {std::move(eta),
              Packed<V>{op(a.lambda_packed().elements, b.lambda_packed().elements)}};
    }
    if (a.full() || b.full()) return combine(to_full(a), to_full(b), op);
  }
  if (a.isotropic()) return {std::move(eta), op(a.lambda_full(), b.lambda_vector())};
  if (b.isotropic()) return {std::move(eta), op(a.lambda_vector(), b.lambda_full())};
  return {std::move(eta), op(a.lambda_vector(), b.lambda_vector())};
}

}  // namespace detail

template <Storage V>
Gaussian<V> product(const Gaussian<V>& a, const Gaussian<V>& b) {
  return detail::combine(a, b, [](const auto& x, const auto& y) { return x + y; });
}

template <Storage V>
Gaussian<V> quotient(const Gaussian<V>& a, const Gaussian<V>& b) {
  return detail::combine(a, b, [](const auto& x, const auto& y) { return x - y; });
}

template <Storage V>
Gaussian<V> power(const Gaussian<V>& q, typename V::Scalar exponent) {
  V eta = exponent * q.eta();
  if (q.isotropic()) return {std::move(eta), typename V::Scalar(exponent * q.lambda_scalar())};
  if (q.full()) return {std::move(eta), Packed<V>{exponent * q.lambda_packed().elements}};
  return {std::move(eta), exponent * q.lambda_vector()};
}

template <Storage V>
bool is_finite(const Gaussian<V>& q) {
  if (!all_finite(q.eta())) return false;
  if (q.isotropic()) return std::isfinite(q.lambda_scalar());
  return all_finite(q.full() ? q.lambda_packed().elements : q.lambda_vector());
}

// Smallest precision of any coordinate, or of any direction in the full family; NaN if one is NaN.
template <Storage V>
double min_precision(const Gaussian<V>& q) {
  if constexpr (InMainMemory<V>) {
    if (q.full()) return min_eigenvalue(q.lambda_packed(), q.size());
  }
  return q.isotropic() ? double(q.lambda_scalar()) : min_value(q.lambda_vector());
}

// A distribution that can be normalised: every precision positive, everything finite.
template <Storage V>
bool is_proper(const Gaussian<V>& q) {
  if constexpr (InMainMemory<V>) {
    if (q.full()) return all_finite(q.eta()) && is_positive_definite(q.lambda_packed(), q.size());
  }
  return min_precision(q) > 0 && is_finite(q);
}

template <Storage V>
void check_proper(std::string_view function, std::string_view name, const Gaussian<V>& q) {
  if (!is_finite(q)) {
    throw InputError(fmt::format("{}: {} must be finite, but has NaN or infinity", function, name));
  }
  if constexpr (InMainMemory<V>) {
    if (q.full() && is_proper(q)) return;  // without its eigenvalues
  }
  if (const double least = min_precision(q); !(least > 0)) {
    fail(function, fmt::format("every precision of {}", name), "positive",
         fmt::format("{} at its smallest", least));
  }
}

template <Storage V>
V mean(const Gaussian<V>& q) {
  check_proper("mean", "message", q);
  if constexpr (InMainMemory<V>) {
    if (q.full()) return solve(q.lambda_packed(), q.eta());
  }
  return q.isotropic() ? q.eta() / q.lambda_scalar() : q.eta() / q.lambda_vector();
}

template <Storage V>
V variance(const Gaussian<V>& q) {
  check_proper("variance", "message", q);
  if constexpr (InMainMemory<V>) {
    if (q.full()) return inverse_diagonal(q.lambda_packed(), q.size());
  }
  return constant_like(q.eta(), typename V::Scalar(1)) / q.lambda_full();
}

// Σ_i log lambda_i, or log det Λ.
template <Storage V>
double log_precision(const Gaussian<V>& q) {
  if constexpr (InMainMemory<V>) {
    if (q.full()) return log_determinant(q.lambda_packed(), q.size());
  }
  return q.isotropic() ? double(q.size()) * std::log(double(q.lambda_scalar()))
                       : sum(log(q.lambda_vector()));
}

// H(q) = ½ Σ_i log(2πe / lambda_i), in nats.
template <Storage V>
double entropy(const Gaussian<V>& q) {
  check_proper("entropy", "message", q);
  const double d = double(q.size());
  return 0.5 * (d * std::log(2 * std::numbers::pi * std::numbers::e) - log_precision(q));
}

// KL(q ‖ p) = ½ Σ_i [ r_i - 1 - log r_i + lambda^p_i (mean^q_i - mean^p_i)² ],  r_i = lambda^p_i /
// lambda^q_i.
template <Storage V>
double kl(const Gaussian<V>& q, const Gaussian<V>& p) {
  check_proper("kl", "first message", q);
  check_proper("kl", "second message", p);
  check_same_size("kl", "second message", q.size(), p.size());
  if constexpr (InMainMemory<V>) {
    if (q.full() || p.full()) {
      const Gaussian<V> a = to_full(q), b = to_full(p);
      return 0.5 * (trace_of_quotient(b.lambda_packed(), a.lambda_packed(), q.size()) -
                    double(q.size()) + log_precision(a) - log_precision(b) +
                    quadratic_form(b.lambda_packed(), mean(a) - mean(b)));
    }
  }
  const V ratio = p.lambda_full() / q.lambda_full();
  const V gap = mean(q) - mean(p);
  return 0.5 * (sum(ratio) - double(q.size()) - sum(log(ratio)) + dot(p.lambda_full() * gap, gap));
}

// theta = mean + noise / sqrt(lambda), or mean + L⁻ᵀ noise where Λ = L Lᵀ; the caller draws the standard
// normal noise.
template <Storage V>
V sample(const Gaussian<V>& q, const V& noise) {
  check_proper("sample", "message", q);
  check_same_size("sample", "noise", q.size(), noise.size());
  if constexpr (InMainMemory<V>) {
    if (q.full()) return mean(q) + correlated(q.lambda_packed(), noise);
  }
  return mean(q) + noise * sqrt(variance(q));
}

}  // namespace fedep
