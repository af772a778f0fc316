// How an outcome is distributed around a model's outputs: what a loss, a drawn label and a
// predictive distribution have in common.
#pragma once

#include "fedep/data/batch.h"

namespace fedep {

struct Likelihood {
  TargetKind target;
  double noise;  // real: standard deviation of the outcome around the model's output

  // Implicit: all kinds but `real` are this alone.
  Likelihood(TargetKind kind, double deviation = 1.0) : target(kind), noise(deviation) {}

  double variance() const { return noise * noise; }
  // Of an outcome around this prediction; a Poisson count's is its mean.
  double variance_at(double mean) const { return target == TargetKind::count ? mean : variance(); }
  bool operator==(const Likelihood&) const = default;
};

}  // namespace fedep
