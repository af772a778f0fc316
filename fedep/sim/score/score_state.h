// What a run says about a state after a round: scores at the mean of q, marginalised over draws
// from q, at the server's average and over draws around that; and each of them once more after a
// temperature that clients' calibration rows have fitted. Written once for evaluations on a core and
// on a GPU.
//
//   const StateScores scores = score_state<HostVector<float>>(test, calibration, recipe, state, last);
//
// Names are a score's own, then _average, _calibrated, _marginal where they apply.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "fedep/config/recipe.h"
#include "fedep/metric/calibration.h"
#include "fedep/metric/metrics.h"
#include "fedep/metric/temperature.h"
#include "fedep/round/server_state.h"
#include "fedep/sim/score/evaluation.h"

namespace fedep {

// A state where an evaluation can use it.
template <Storage V>
struct StateViewOf {
  const ServerState& numbers;  // round and phase
  const Gaussian<V>& global;   // q
  const V& point;              // its point estimate
  const V* average = nullptr;  // null: none is kept
  std::int64_t average_rounds = 0;
  std::function<Gaussian<V>()> around_average = {};
};

struct StateScores {
  Metrics metrics;
  Reliability reliability;
  Temperatures temperatures;
};

// Whether scores after a round are made over draws: every evaluate.marginal_every rounds and after
// the last one, where the recipe asks for draws.
bool are_draws_due(const Recipe& recipe, const ServerState& state, bool last);
// Whether temperatures are fitted after a round: every evaluate.calibrated_every rounds and after
// the last one.
bool are_temperatures_due(const Recipe& recipe, const ServerState& state, bool last);

namespace detail {

// accuracy_marginal → accuracy_average_marginal
std::string with_suffix(std::string_view name, std::string_view suffix);
// Scores that a temperature moves.
bool depends_on_temperature(std::string_view name);

}  // namespace detail

// E has at(theta, which, temperature), marginal(q, draws, temperature), losses_at(theta),
// losses_marginal(q, draws) and reliability(). `calibration` null: there are no temperatures.
template <Storage V, class E>
StateScores score_state(E& test, E* calibration, const Recipe& recipe, const StateViewOf<V>& state,
                        bool last) {
  const EvaluateSettings& settings = recipe.evaluate;
  const Subsample which{.seed = recipe.seed,
                        .round = state.numbers.round,
                        .examples = std::size_t(settings.examples)};
  const MarginalDraws draws{.seed = recipe.seed,
                            .round = state.numbers.round,
                            .samples = settings.samples,
                            .examples = which.examples};
  const MarginalDraws all_draws{
      .seed = recipe.seed, .round = state.numbers.round, .samples = settings.samples};
  const bool calibrated =
      calibration != nullptr && are_temperatures_due(recipe, state.numbers, last);
  StateScores out;
  const auto add = [&](const Metrics& scores, const std::string& suffix, bool moved_only) {
    for (const auto& [name, value] : scores) {
      if (moved_only && !detail::depends_on_temperature(name)) continue;
      out.metrics.emplace_back(detail::with_suffix(name, suffix), value);
    }
  };
  // scores(temperature) of the test set, losses() of the calibration rows.
  const auto predict = [&](const std::string& suffix, bool marginal, double& temperature,
                           const auto& scores, const auto& losses) {
    add(scores(1.0), suffix, false);
    const auto bins = test.reliability();
    if (calibrated) {
      temperature = losses().best();
      add(scores(temperature), suffix + "_calibrated", true);
      out.metrics.emplace_back("temperature" + suffix + (marginal ? "_marginal" : ""), temperature);
      out.temperatures.round = state.numbers.round;
    }
    return bins;
  };
  const auto at = [&](const V& theta, const std::string& suffix, double& temperature) {
    return predict(
        suffix, false, temperature, [&](double t) { return test.at(theta, which, t); },
        [&] { return calibration->losses_at(theta); });
  };
  const auto marginal = [&](const Gaussian<V>& q, const std::string& suffix, double& temperature) {
    return predict(
        suffix, true, temperature, [&](double t) { return test.marginal(q, draws, t); },
        [&] { return calibration->losses_marginal(q, all_draws); });
  };
  out.reliability.point = at(state.point, "", out.temperatures.point);
  if (is_marginal_due(recipe, state.numbers, last) && is_proper(state.global)) {
    out.reliability.marginal = marginal(state.global, "", out.temperatures.marginal);
  }
  if (state.average == nullptr) return out;
  at(*state.average, "_average", out.temperatures.average);
  if (are_draws_due(recipe, state.numbers, last) && state.average_rounds > 1) {
    const Gaussian<V> around = state.around_average();
    // Not of a run whose means went beyond all bounds.
    if (is_proper(around)) marginal(around, "_average", out.temperatures.average_marginal);
  }
  return out;
}

}  // namespace fedep
