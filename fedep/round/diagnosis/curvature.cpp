#include "fedep/round/diagnosis/curvature.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>

#include "fedep/message/check.h"
#include "fedep/message/packed.h"

namespace fedep {
namespace {

// Integers of one kind of number: so many clients' sum stays below 2^62.
class GridSum {
 public:
  explicit GridSum(std::size_t size) : units_(size, 0) {}

  void hear(std::span<const double> values) {
    for (const double x : values) largest_ = std::max(largest_, std::abs(x));
  }
  void choose_grid(std::size_t clients) {
    exponent_ = largest_ > 0 ? std::ilogb(largest_) + 1 - 62 + int(std::bit_width(clients)) : 0;
  }
  void add(std::span<const double> values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      units_[i] += std::llrint(std::ldexp(values[i], -exponent_));
    }
  }
  std::vector<double> value() const {
    std::vector<double> out;
    out.reserve(units_.size());
    for (const std::int64_t units : units_) out.push_back(std::ldexp(double(units), exponent_));
    return out;
  }

 private:
  std::vector<std::int64_t> units_;
  double largest_ = 0;
  int exponent_ = 0;
};

bool all_finite(std::span<const double> values) {
  return std::ranges::all_of(values, [](double x) { return std::isfinite(x); });
}

}  // namespace

std::optional<CurvaturePart> add_curvatures(
    std::size_t clients, std::size_t weights,
    const std::function<CurvaturePart(std::size_t client)>& part,
    const std::function<bool()>& stop) {
  GridSum gradient(weights), hessian(packed_size(weights));
  for (const bool adds : {false, true}) {
    if (adds) {
      gradient.choose_grid(clients);
      hessian.choose_grid(clients);
    }
    for (std::size_t client = 0; client < clients; ++client) {
      if (stop && stop()) return std::nullopt;
      const CurvaturePart own = part(client);
      check_same_size("curvature", "gradient", weights, own.gradient.size());
      check_same_size("curvature", "hessian", packed_size(weights), own.hessian.size());
      if (!all_finite(own.gradient) || !all_finite(own.hessian)) {
        throw RunError(fmt::format("curvature of client {}: must be finite, but is not", client));
      }
      adds ? gradient.add(own.gradient) : gradient.hear(own.gradient);
      adds ? hessian.add(own.hessian) : hessian.hear(own.hessian);
    }
  }
  return CurvaturePart{gradient.value(), hessian.value()};
}

}  // namespace fedep
