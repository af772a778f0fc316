#include "fedep/round/diagnosis/factor_gap.h"

#include <cmath>
#include <cstddef>
#include <optional>
#include <vector>

#include "fedep/round/factor_clock.h"

namespace fedep {
namespace {

// The sum of one array (η or Λ) over the prior and all factors, in double.
class ArraySum {
 public:
  explicit ArraySum(std::span<const float> first) : sum_(first.begin(), first.end()) {}

  void add(std::span<const float> x, float times = 1) {
    for (std::size_t i = 0; i < sum_.size(); ++i) sum_[i] += double(times * x[i]);
  }
  void add_caught_up(const MissedSteps& missed, std::span<const float> t,
                     std::span<const float> v) {
    for (std::size_t i = 0; i < sum_.size(); ++i) sum_[i] += double(caught_up(missed, t[i], v[i]));
  }

  // |whole - sum| / |whole|; 0 where both are 0. `counts(i)`: how often an element counts.
  template <class Counts>
  double gap_to(std::span<const float> whole, const Counts& counts) const {
    double apart = 0, all = 0;
    for (std::size_t i = 0; i < sum_.size(); ++i) {
      const double q = double(whole[i]), gap = q - sum_[i];
      apart += counts(i) * gap * gap;
      all += counts(i) * q * q;
    }
    return apart == 0 ? 0 : std::sqrt(apart / all);
  }

 private:
  std::vector<double> sum_;
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

}  // namespace

FactorGap factor_gap(const ServerState& state, const Phase& phase, const Population& population,
                     const SiteStore& sites) {
  // ADMM has the product beside q; in FedDyn it is of no prior.
  const Message& q = state.factors.size() > 0 ? state.factors : state.global;
  const Message first =
      phase.algorithm->point_estimate ? flat_like(q.eta(), q.family()) : state.prior;
  ArraySum eta(first.eta().span()), lambda(first.lambda_span());
  const Message& per_example = state.unvisited.per_example;
  for (std::size_t k = 0; k < population.size(); ++k) {
    const std::optional<SiteState> site = sites.get(population[k].key);
    if (!site) {
      if (per_example.size() == 0) continue;
      eta.add(per_example.eta().span(), float(population[k].examples));
      lambda.add(per_example.lambda_span(), float(population[k].examples));
    } else if (phase.follows_rounds()) {
      const MissedSteps missed =
          missed_steps(phase.factor_optimizer, state.step_scales, site->optimizer.steps);
      const Message& v = site->optimizer.slots.at(0);
      eta.add_caught_up(missed, site->factor.eta().span(), v.eta().span());
      lambda.add_caught_up(missed, site->factor.lambda_span(), v.lambda_span());
    } else {
      eta.add(site->factor.eta().span());
      lambda.add(site->factor.lambda_span());
    }
  }
  const auto once = [](std::size_t) { return 1.0; };
  FactorGap gap{.eta = eta.gap_to(q.eta().span(), once)};
  if (q.full()) {
    const std::vector<double> counts = packed_counts(q.size());
    gap.lambda = lambda.gap_to(q.lambda_span(), [&](std::size_t i) { return counts[i]; });
  } else {
    gap.lambda = lambda.gap_to(q.lambda_span(), once);
  }
  return gap;
}

}  // namespace fedep
