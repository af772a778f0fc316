// A posterior scored on a data set's held-out examples, overall and client by client, at its mean
// and marginalised: what `fedep evaluate` prints and a report draws.
//
//   const PosteriorEvaluation result = evaluate_posterior(data, *model, state, draws);
//   for (const auto& [name, value] : result.metrics) …   // accuracy, …, accuracy_marginal, …
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fedep/data/dataset.h"
#include "fedep/metric/calibration.h"
#include "fedep/metric/metrics.h"
#include "fedep/metric/risk_report.h"
#include "fedep/model/model.h"
#include "fedep/round/server_state.h"
#include "fedep/sim/score/detection_scores.h"
#include "fedep/sim/score/predictive.h"
#include "fedep/sim/score/selective_scores.h"

namespace fedep {

struct ClientEvaluation {
  std::string client;
  std::size_t examples = 0;
  Metrics metrics;  // named as overall
  std::optional<RiskReport> risk = {}, marginal_risk = {};
};

struct PosteriorEvaluation {
  std::size_t examples = 0;
  Metrics metrics;  // of scores.h, and ece_equal_mass; then the same with _marginal
  std::vector<ReliabilityBin> point;     // uniform bins of the top class, for labels and binary
  std::vector<ReliabilityBin> marginal;  // empty without draws
  std::vector<ClientEvaluation> clients;
  // Of yes or no: what predicted risks are worth, at the mean and marginalised.
  std::optional<RiskReport> risk = {}, marginal_risk = {};
  // Of classes and of yes or no: whether predictions know where they are wrong.
  std::optional<SelectiveReport> selective = {};
  // The same: whether they tell held-out examples from unlike ones, set by set.
  std::vector<DetectionReport> detection = {};
};

// Without `draws`: at the mean alone. Throws InputError if there are no held-out examples, or sets of unlike ones
// where outcomes have no classes.
PosteriorEvaluation evaluate_posterior(const Dataset& data, Model& model, const ServerState& state,
                                       const std::optional<DrawSettings>& draws,
                                       const PredictiveUse& use = {},
                                       std::span<const UnlikeSet> unlike = {});

}  // namespace fedep
