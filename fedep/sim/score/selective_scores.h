// How well a posterior knows where it is wrong, on held-out examples with classes: predictions sorted by how sure they
// are, at the mean by their confidence, over draws by the averaged prediction's confidence and by mutual information,
// which is what the weights' uncertainty alone makes unsure.
//
//   SelectiveScores scores(TargetKind::label, 100);
//   scores.add_point(predictions, batch);
//   scores.add_marginal(over_draws, batch);          // predictions with DrawSettings::entropy
//   scores.report().marginal->risk;                  // errors at kSelectiveCoverages
#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "fedep/data/batch.h"
#include "fedep/metric/exact_sum.h"
#include "fedep/metric/selective.h"
#include "fedep/sim/score/predictive.h"

namespace fedep {

inline constexpr std::array kSelectiveCoverages{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0};

struct SelectiveCurve {
  std::array<double, kSelectiveCoverages.size()> risk = {};
  double area = 0, least_area = 0;
};

struct SelectiveReport {
  SelectiveCurve point;                                   // by confidence, at the mean
  std::optional<SelectiveCurve> marginal = {};            // by confidence, averaged over draws
  std::optional<SelectiveCurve> mutual_information = {};  // the same predictions, the other order
  double entropy = 0;  // mean over examples, in nats: of predictions at the mean,
  std::optional<double> entropy_marginal = {};  // of averaged ones,
  std::optional<double> information = {};       // and the part of it that is the weights'
};

// Whether predictions of this kind name one class, and so can be wrong.
bool can_be_selective(TargetKind target);

class SelectiveScores {
 public:
  SelectiveScores(TargetKind target, std::size_t outputs) : target_(target), outputs_(outputs) {}

  void add_point(const Predictions& predictions, const Batch& targets);
  void add_marginal(const Predictions& predictions, const Batch& targets);

  SelectiveReport report() const;

 private:
  TargetKind target_;
  std::size_t outputs_;
  SelectiveRisk point_, marginal_, by_information_;
  ExactSum entropy_, entropy_marginal_, information_;
};

}  // namespace fedep
