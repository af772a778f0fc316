// Scores of predictions for one kind of target, gathered batch by batch.
//
//   const std::unique_ptr<Scores> scores = make_scores(TargetKind::label, 100);
//   scores->add(predictions_of(TargetKind::label, logits, 100), {}, batch);
//   for (const auto& [name, value] : scores->metrics()) …        // accuracy, nll, brier, ece
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "fedep/data/batch.h"
#include "fedep/metric/calibration.h"
#include "fedep/metric/metrics.h"
#include "fedep/model/likelihood.h"

namespace fedep {

class Parts;  // metric/parts.h

class Scores {
 public:
  virtual ~Scores() = default;
  // `spread` is the variance of each prediction over draws of the weights, or empty where there was
  // one draw: real targets have it beside their noise, probabilities are averages already.
  virtual void add(std::span<const double> predictions, std::span<const double> spread,
                   const Batch& batch) = 0;
  // What it is made of, so that others' can be added (metric/parts.h).
  virtual void parts(Parts& parts) = 0;
  virtual Metrics metrics() const = 0;
  // The bins behind the ECE; none for targets without classes.
  virtual std::vector<ReliabilityBin> reliability() const { return {}; }
};

std::unique_ptr<Scores> make_scores(const Likelihood& likelihood, std::size_t outputs);

// Of draws with this mean and this mean of squares, unbiased; NaN if they are not finite, or for one.
double variance_of_draws(double mean, double mean_square, std::size_t draws);

// What a model's outputs predict: probabilities, or, for real targets, the outputs themselves.
std::vector<double> predictions_of(TargetKind target, std::span<const float> logits,
                                   std::size_t outputs);

}  // namespace fedep
