#include "fedep/round/diagnosis/factor_gap.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "fedep/round/factor_clock.h"

namespace fedep {
namespace {

// The sum of one array (η or Λ) over all factors. Numbers go to a grid that the largest of them sets and
// are added as integers, so that the sum has the same bits however factors are spread over stores.
class ArraySum {
 public:
  ArraySum(std::size_t size, std::size_t clients) : units_(size, 0), clients_(clients) {}

  // First of every factor, what the grid must hold;
  void measure(float x) {
    largest_ = std::isfinite(x) ? std::max(largest_, std::abs(double(x))) : kInfinity;
  }
  void choose_grid(const SiteStore& sites) {
    largest_ = sites.largest(largest_);
    if (largest_ == 0 || std::isinf(largest_)) return;
    // Below 2^62 for so many numbers, none of which is above 2^(ilogb + 1).
    exponent_ = std::ilogb(largest_) + 1 + std::ilogb(double(clients_)) + 1 - 62;
    to_units_ = std::ldexp(1.0, -exponent_);
  }
  // then of every factor again.
  void add(std::size_t i, float x) {
    units_[i] += std::int64_t(std::nearbyint(double(x) * to_units_));
  }
  void add_up(const SiteStore& sites) { sites.add_up(units_); }
  bool is_finite() const { return std::isfinite(largest_); }

  // |whole - first - sum| / |whole|; 0 where both are 0. `counts(i)`: how often an element counts.
  template <class Counts>
  double gap_to(std::span<const float> whole, std::span<const float> first,
                const Counts& counts) const {
    double apart = 0, all = 0;
    for (std::size_t i = 0; i < units_.size(); ++i) {
      const double sum = double(first[i]) + std::ldexp(double(units_[i]), exponent_);
      const double q = double(whole[i]), gap = q - sum;
      apart += counts(i) * gap * gap;
      all += counts(i) * q * q;
    }
    return apart == 0 ? 0 : std::sqrt(apart / all);
  }

 private:
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();

  std::vector<std::int64_t> units_;
  std::size_t clients_;
  double largest_ = 0;
  int exponent_ = 0;
  double to_units_ = 0;
};

// Elements of a packed lower triangle, row by row: those off the diagonal stand for two.
std::vector<double> packed_counts(std::size_t size) {
  std::vector<double> counts;
  for (std::size_t row = 0; row < size; ++row) {
    counts.insert(counts.end(), row, 2.0);
    counts.push_back(1.0);
  }
  return counts;
}

// Calls eta(i, x) and lambda(i, x) for all numbers but zeros of all factors that `sites` answers for.
template <class Eta, class Lambda>
void walk_factors(const ServerState& state, const Phase& phase, const Population& population,
                  const SiteStore& sites, const Eta& eta, const Lambda& lambda) {
  const auto walk = [](std::span<const float> numbers, float times, const auto& visit) {
    for (std::size_t i = 0; i < numbers.size(); ++i) visit(i, times * numbers[i]);
  };
  const auto walk_runs = [](const SparseArray& array, const auto& visit) {
    for_each_run(array, [&](std::size_t begin, std::span<const float> numbers) {
      for (std::size_t i = 0; i < numbers.size(); ++i) visit(begin + i, numbers[i]);
    });
  };
  const auto walk_caught_up = [](const MissedSteps& missed, std::span<const float> t,
                                 std::span<const float> v, const auto& visit) {
    for (std::size_t i = 0; i < t.size(); ++i) visit(i, float(caught_up(missed, t[i], v[i])));
  };
  const Message& per_example = state.unvisited.per_example;
  for (std::size_t k = 0; k < population.size(); ++k) {
    const std::uint64_t key = population[k].key;
    if (sites.is_elsewhere(key)) continue;
    bool visited = false;
    sites.look(key, [&](const StoredSite& site) {
      visited = true;
      if (!phase.follows_rounds()) {
        walk_runs(site.factor.eta, eta);
        walk_runs(site.factor.lambda, lambda);
        return;
      }
      const MissedSteps missed =
          missed_steps(phase.factor_optimizer, state.step_scales, site.steps);
      const Message t = expanded(site.factor), v = expanded(site.slots.at(0));
      walk_caught_up(missed, t.eta().span(), v.eta().span(), eta);
      walk_caught_up(missed, t.lambda_span(), v.lambda_span(), lambda);
    });
    if (visited || per_example.size() == 0) continue;
    walk(per_example.eta().span(), float(population[k].examples), eta);
    walk(per_example.lambda_span(), float(population[k].examples), lambda);
  }
}

}  // namespace

FactorGap factor_gap(const ServerState& state, const Phase& phase, const Population& population,
                     const SiteStore& sites) {
  // ADMM has the product beside q; in FedDyn it is of no prior.
  const Message& q = state.factors.size() > 0 ? state.factors : state.global;
  ArraySum eta(q.size(), population.size()), lambda(q.lambda_span().size(), population.size());
  walk_factors(
      state, phase, population, sites, [&](std::size_t, float x) { eta.measure(x); },
      [&](std::size_t, float x) { lambda.measure(x); });
  eta.choose_grid(sites);
  lambda.choose_grid(sites);
  if (!eta.is_finite() || !lambda.is_finite()) return {};
  walk_factors(
      state, phase, population, sites, [&](std::size_t i, float x) { eta.add(i, x); },
      [&](std::size_t i, float x) { lambda.add(i, x); });
  eta.add_up(sites);
  lambda.add_up(sites);
  const auto once = [](std::size_t) { return 1.0; };
  const Message first = phase.algorithm->point_estimate ? flat_like(q.eta(), q.family())
                                                        : in_family(state.prior, q.family());
  FactorGap gap{.eta = eta.gap_to(q.eta().span(), first.eta().span(), once)};
  const std::span<const float> whole = q.lambda_span(), prior = first.lambda_span();
  if (q.full()) {
    const std::vector<double> counts = packed_counts(q.size());
    gap.lambda = lambda.gap_to(whole, prior, [&](std::size_t i) { return counts[i]; });
  } else {
    gap.lambda = lambda.gap_to(whole, prior, once);
  }
  return gap;
}

}  // namespace fedep
