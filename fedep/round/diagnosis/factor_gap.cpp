#include "fedep/round/diagnosis/factor_gap.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "fedep/message/check.h"
#include "fedep/round/factor_clock.h"

namespace fedep {
namespace {

// The sum of one array (η, Λ or shares) over all factors. Numbers go to a grid that the largest of them sets and
// are added as integers, so that the sum has the same bits however factors are spread over stores.
class ArraySum {
 public:
  ArraySum(std::size_t size, std::size_t clients) : units_(size, 0), clients_(clients) {}

  // First of every factor, what the grid must hold;
  void measure(double x) {
    largest_ = std::isfinite(x) ? std::max(largest_, std::abs(x)) : kInfinity;
  }
  void choose_grid(const SiteStore& sites) {
    largest_ = sites.largest(largest_);
    if (largest_ == 0 || std::isinf(largest_)) return;
    // Below 2^62 for so many numbers, none of which is above 2^(ilogb + 1).
    exponent_ = std::ilogb(largest_) + 1 + std::ilogb(double(clients_)) + 1 - 62;
    to_units_ = std::ldexp(1.0, -exponent_);
  }
  // then of every factor again.
  void add(std::size_t i, double x) { units_[i] += std::int64_t(std::nearbyint(x * to_units_)); }
  void add_up(const SiteStore& sites) { sites.add_up(units_); }
  bool is_finite() const { return std::isfinite(largest_); }
  double total(std::size_t i) const { return std::ldexp(double(units_[i]), exponent_); }

 private:
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();

  std::vector<std::int64_t> units_;
  std::size_t clients_;
  double largest_ = 0;
  int exponent_ = 0;
  double to_units_ = 0;
};

// |whole - product| / |whole|; 0 where both are 0. `counts(i)`: how often an element counts.
template <class Product, class Counts>
double relative_gap(std::span<const float> whole, const Product& product, const Counts& counts) {
  double apart = 0, all = 0;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    const double q = double(whole[i]), gap = q - product(i);
    apart += counts(i) * gap * gap;
    all += counts(i) * q * q;
  }
  return apart == 0 ? 0 : std::sqrt(apart / all);
}

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
    if (!phase.shares_means) walk(per_example.eta().span(), float(population[k].examples), eta);
    walk(per_example.lambda_span(), float(population[k].examples), lambda);
  }
}

// Calls share(i, x) for all shares of all factors that `sites` answers for: i = 0 of what clients have
// who were never visited, i = 1 of the phase's first round.
template <class Share>
void walk_shares(const ServerState& state, const Phase& phase, const Population& population,
                 const SiteStore& sites, const Share& share) {
  for (std::size_t k = 0; k < population.size(); ++k) {
    const std::uint64_t key = population[k].key;
    if (sites.is_elsewhere(key)) continue;
    bool visited = false;
    sites.look(key, [&](const StoredSite& site) {
      visited = true;
      for (const MeanShare& of : site.shares) {
        if (of.round != kUnvisited && (of.round < phase.first_round || of.round >= state.round)) {
          fail("factor_gap", "a share's round",
               fmt::format("in [{}, {})", phase.first_round, state.round),
               fmt::format("{}", of.round));
        }
        const std::int64_t i = of.round == kUnvisited ? 0 : of.round - phase.first_round + 1;
        share(std::size_t(i), of.share);
      }
    });
    if (!visited && state.unvisited.per_example.size() > 0) {
      share(std::size_t(0), double(population[k].examples));
    }
  }
}

// Σ_k Σ_r share μ_r; empty in phases without shares.
std::vector<double> sum_of_shares(const ServerState& state, const Phase& phase,
                                  const Population& population, SiteStore& sites) {
  if (!phase.shares_means) return {};
  const auto rounds = std::size_t(state.round - phase.first_round);
  ArraySum shares(rounds + 1, population.size());
  walk_shares(state, phase, population, sites, [&](std::size_t, double x) { shares.measure(x); });
  shares.choose_grid(sites);
  walk_shares(state, phase, population, sites, [&](std::size_t i, double x) { shares.add(i, x); });
  shares.add_up(sites);
  std::vector<double> sum(state.global.size(), 0.0);
  for (std::size_t i = 0; i <= rounds; ++i) {
    const double share = shares.total(i);
    if (share == 0) continue;
    const MeanShelf::Mean held =
        i == 0 ? nullptr : sites.means().at(phase.first_round + std::int64_t(i) - 1);
    const HostVector<float>& mean = held ? *held : state.unvisited.per_example.eta();
    check_same_size("factor_gap", "mean of q that a factor refers to", sum.size(), mean.size());
    for (std::size_t j = 0; j < sum.size(); ++j) sum[j] += share * double(mean[j]);
  }
  return sum;
}

// ADMM has the product beside q; in FedDyn it is of no prior.
const Message& whole_of(const ServerState& state) {
  return state.factors.size() > 0 ? state.factors : state.global;
}

// eta(x, i) and lambda(x, i): x and the i-th number of all factors.
template <class Eta, class Lambda>
FactorGap gap_to(const ServerState& state, const Phase& phase, const Eta& eta,
                 const Lambda& lambda) {
  const Message& q = whole_of(state);
  const Message first = phase.algorithm->point_estimate ? flat_like(q.eta(), q.family())
                                                        : in_family(state.prior, q.family());
  const std::span<const float> first_eta = first.eta().span(), first_lambda = first.lambda_span();
  const auto once = [](std::size_t) { return 1.0; };
  FactorGap gap{
      .eta = relative_gap(
          q.eta().span(), [&](std::size_t i) { return eta(double(first_eta[i]), i); }, once)};
  const auto lambdas = [&](std::size_t i) { return lambda(double(first_lambda[i]), i); };
  if (q.full()) {
    const std::vector<double> counts = packed_counts(q.size());
    gap.lambda = relative_gap(q.lambda_span(), lambdas, [&](std::size_t i) { return counts[i]; });
  } else {
    gap.lambda = relative_gap(q.lambda_span(), lambdas, once);
  }
  return gap;
}

}  // namespace

FactorGap factor_gap(const ServerState& state, const Phase& phase, const Population& population,
                     SiteStore& sites) {
  const Message& q = whole_of(state);
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
  const std::vector<double> shared = sum_of_shares(state, phase, population, sites);
  return gap_to(
      state, phase,
      [&](double x, std::size_t i) { return x + eta.total(i) + (shared.empty() ? 0 : shared[i]); },
      [&](double x, std::size_t i) { return x + lambda.total(i); });
}

FactorGap factor_gap_of_sums(const ServerState& state, const Phase& phase,
                             std::span<const double> eta, std::span<const double> lambda) {
  const Message& q = whole_of(state);
  check_same_size("factor_gap", "the sum of factors' eta", q.size(), eta.size());
  check_same_size("factor_gap", "the sum of factors' lambda", q.lambda_span().size(),
                  lambda.size());
  const auto is_finite = [](double x) { return std::isfinite(x); };
  if (!std::ranges::all_of(eta, is_finite) || !std::ranges::all_of(lambda, is_finite)) return {};
  return gap_to(
      state, phase, [&](double x, std::size_t i) { return x + eta[i]; },
      [&](double x, std::size_t i) { return x + lambda[i]; });
}

}  // namespace fedep
