// The posterior predictive: what draws of the weights say about examples, averaged. One draw is in
// memory at a time, so it costs one set of weights however many draws there are.
//
//   const Predictive predictive(*model, state);
//   const Predictions point = predictive.point(batch);
//   predictive.marginal({.samples = 10}, batches, batch_at, [&](std::size_t i, const Predictions& p) { … });
//
// Draws are those that a run's own marginal scores average: addressed by (seed, round, draw).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "fedep/message/gaussian.h"
#include "fedep/model/model.h"
#include "fedep/round/server_state.h"

namespace fedep {

struct OwnIntercept;  // sim/rows/own_intercept.h

struct DrawSettings {
  std::uint64_t seed = 1;
  std::int64_t round = 0;
  int samples = 10;
  bool last_layer = false;  // only these weights are drawn, all others stay at their mean
  bool entropy = false;     // Predictions::entropy too, at a logarithm for every number
  // Between 0 and 1: Predictions::low and high too, which hold this part of the draws, at the memory of all
  // of them for the examples at hand.
  double level = 0;
  double temperature = 1;  // after which draws are between low and high

  bool operator==(const DrawSettings&) const = default;
};

struct Predictions {
  std::vector<double> mean = {};  // [examples, outputs]: probabilities, numbers, or means of counts
  // Of numbers and of counts' means: their variance over draws, unbiased; empty for one draw and for probabilities.
  std::vector<double> spread = {};
  // [examples, outputs]: where the middle part `level` of the draws begins and ends, each output by itself: of
  // probabilities, of numbers and of counts' means. Empty where nobody asked for it.
  std::vector<double> low = {}, high = {};
  // [examples]: mean over draws of a draw's entropy, in nats. Empty where nobody asked for it.
  std::vector<double> entropy = {};
  // [examples]: entropy of the mean before a temperature; empty where there was none.
  std::vector<double> entropy_before = {};
};

// Coordinates of the layer that makes the outputs: the last tensor and, if one of the two is its
// bias, the one before. Throws InputError if the last tensor has no extent of so many outputs.
Range last_layer(const Layout& layout, std::size_t outputs);

// Entropy of one example's prediction in nats: of its class, of all its tags together, of a normal
// or of a count with this variance.
double predictive_entropy(TargetKind target, std::span<const double> mean, double variance = 1);

// Mutual information of an example's outcome and the weights, in nats, of predictions over draws that have
// entropies: what draws disagree in. `variance` as above, of the averaged prediction.
double mutual_information(TargetKind target, const Predictions& predictions, std::size_t example,
                          std::size_t outputs, double variance = 1);

// Draw `index` of a run's weights after this round: the one that scores and predictions average too.
HostVector<float> draw_of(const Message& q, std::uint64_t seed, std::int64_t round, int index);

// Whose a row is: what its client knows of its own intercept (rows/own_intercept.h), where the model has
// such. Without it clients are unknown ones, whose intercepts are N(m, τ²).
using InterceptAt = std::function<const OwnIntercept&(std::size_t batch, std::size_t row)>;

using BatchAt = std::function<const Batch&(std::size_t batch)>;
using UsePredictions = std::function<void(std::size_t batch, const Predictions& predictions)>;

// Predictions averaged over draws from q, which must be proper; `use` gets the batches in order.
// Batches are asked for once per draw.
//
// Every draw of shared parameters has one of the intercepts given them: these go evenly through their
// distribution from draw to draw.
void average_over_draws(Model& model, const Message& q, const DrawSettings& draws,
                        std::size_t batches, const BatchAt& batch_at, const UsePredictions& use,
                        const InterceptAt& intercept_at = {});

// A row's client's own intercept takes the shared one's place in its output, `z` deviations from its mean given θ.
// Models without such are left alone.
void add_own_intercepts(const Model& model, std::span<const float> theta, std::size_t number,
                        const InterceptAt& intercept_at, double z, std::span<float> logits);

// An outcome's distribution around predictions at these weights, and around averages over draws from q:
// where noise is estimated, its variance is averaged over q.
Likelihood likelihood_at(const Model& model, std::span<const float> theta);
Likelihood average_likelihood(const Model& model, const Message& q);

// What of a state predictions are made with.
struct PredictiveUse {
  bool average = false;   // the server's average and draws around it, in place of q
  bool tempered = false;  // after the temperatures that the state has
};

// Of a state that a run left.
class Predictive {
 public:
  // What is referred to must outlive this. Throws InputError if there is no average to use.
  Predictive(Model& model, const ServerState& state, const PredictiveUse& use = {});

  // 1 where the state has none for such predictions.
  double temperature(bool marginal) const;

  // The weights that point() predicts with.
  const HostVector<float>& weights() const { return point_; }
  // At the point estimate, with its entropy; an intercept of a client's own is its mean. `number`: what
  // `intercept_at` calls the batch.
  Predictions point(const Batch& batch, const InterceptAt& intercept_at = {},
                    std::size_t number = 0);
  // average_over_draws() of the state's q. Throws InputError if that is improper.
  void marginal(const DrawSettings& draws, std::size_t batches, const BatchAt& batch_at,
                const UsePredictions& use, const InterceptAt& intercept_at = {});

 private:
  Model& model_;
  const ServerState& state_;
  PredictiveUse use_;
  HostVector<float> point_;
};

}  // namespace fedep
