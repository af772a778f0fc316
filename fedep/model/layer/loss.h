// Losses of the five kinds of targets, their derivatives by the logits, and labels drawn from them.
//
//   label    -log softmax(z)_y                       binary  log(1 + e^z) - y z
//   tags     mean over tags c of log(1 + e^z_c) - y_c z_c    real    (z - y)^2 / (2 noise^2)
//   count    e^z - y z + log y!
//
//   const double loss = loss_delta(TargetKind::label, batch, logits, 62, Scale::batch_mean, {}, delta);
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fedep/config/recipe.h"
#include "fedep/data/batch.h"
#include "fedep/model/likelihood.h"
#include "fedep/random/stream.h"

namespace fedep {

enum class Scale {
  batch_mean,   // delta is the derivative of the mean over the batch
  per_example,  // row i of delta is the derivative of example i's own loss
};

// Mean loss over the batch. Writes delta [batch.size, outputs]; it may be the memory of `logits`.
// `tag_targets` [batch.size, outputs] replaces the batch's tags if it is not empty.
// Throws InputError where the batch has no targets of this kind or a label is not below `outputs`.
double loss_delta(const Likelihood& likelihood, const Batch& batch, std::span<const float> logits,
                  std::size_t outputs, Scale scale, std::span<const float> tag_targets,
                  std::span<float> delta);

// The logistic part of it, over any numbers: z becomes scale (sigmoid(z) - y). Gives back
// Σ log(1 + e^z) - y z. A z of -1e30 counts for nothing where y is 0.
double logistic_delta(std::span<float> z, std::span<const float> y, float scale);

// Targets for as many examples as there are rows of logits; what the kind does not need is empty.
struct DrawnTargets {
  std::vector<std::int32_t> labels;  // label and binary
  std::vector<float> tag_targets;    // tags: [rows, outputs]
  std::vector<float> reals;          // real and count

  bool operator==(const DrawnTargets&) const = default;
};

// One draw per example from the model's own predictive distribution: categorical, Bernoulli, a
// Bernoulli per tag, a normal with the noise, or a Poisson count. LabelSampler::softmax_index is for tags: a draw
// from softmax over the tags, whose index becomes the target of all of them.
DrawnTargets sample_labels(const Likelihood& likelihood, std::span<const float> logits,
                           std::size_t outputs, const Address& address,
                           LabelSampler sampler = LabelSampler::model);

}  // namespace fedep
