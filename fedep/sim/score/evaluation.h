// Scores a state on held-out examples: at the mean of q, and marginalised over draws from q (the
// average of the draws' predictions), overall and per client.
//
//   Evaluation evaluation(data, std::move(model));
//   const Metrics point = evaluation.at(mean);
//   const Metrics marginal = evaluation.marginal(q, {.seed = 1, .round = 1500, .samples = 10});
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fedep/config/recipe.h"
#include "fedep/data/dataset.h"
#include "fedep/message/gaussian.h"
#include "fedep/metric/metrics.h"
#include "fedep/metric/temperature.h"
#include "fedep/model/model.h"
#include "fedep/round/server_state.h"
#include "fedep/sim/score/predictive.h"
#include "fedep/sim/score/scores.h"

namespace fedep {

class OwnIntercepts;  // sim/rows/own_intercept.h
class Ranks;          // sim/ranks/ranks.h

// Which held-out examples a round is scored on: so many, drawn without replacement, anew for every
// round. None asked for, or as many as there are: all of them.
struct Subsample {
  std::uint64_t seed = 1;
  std::int64_t round = 0;
  std::size_t examples = 0;
};

// Their indices, ascending.
std::vector<std::size_t> subsample(const Subsample& which, std::size_t all);

struct MarginalDraws {
  std::uint64_t seed = 1;
  std::int64_t round = 0;
  int samples = 10;
  std::size_t examples = 0;  // as in Subsample, and the same ones
};

struct ClientMetrics {
  std::string client;
  Metrics metrics;
};

// Whether the scores after a round are averaged over draws too: every evaluate.marginal_every rounds
// and after the last one, where the recipe asks for draws and the phase infers a posterior. (And only
// a proper q has draws.)
bool is_marginal_due(const Recipe& recipe, const ServerState& state, bool last);

// How test examples pass through memory.
struct EvaluationMemory {
  std::size_t chunk = 500;                         // examples predicted at a time
  std::size_t cache_bytes = std::size_t(1) << 29;  // features are kept if all of them fit
};

class Evaluation {
 public:
  Evaluation(const Dataset& data, std::unique_ptr<Model> model,
             const EvaluationMemory& memory = {});

  // From now on at(), marginal() and losses are asked for by all ranks alike, each of which predicts its
  // share of the batches; all of them get the same bits as one would. Null: by this process alone.
  void share_among(Ranks* ranks) { ranks_ = ranks; }

  // After `temperature` (metric/temperature.h); 1: as they are.
  Metrics at(const HostVector<float>& theta, const Subsample& which = {}, double temperature = 1);
  // `q` must be proper. Names end in _marginal.
  Metrics marginal(const Message& q, const MarginalDraws& draws, double temperature = 1);
  // What held-out examples say about temperatures of the same predictions.
  TemperatureLosses losses_at(const HostVector<float>& theta);
  TemperatureLosses losses_marginal(const Message& q, const MarginalDraws& draws);
  // At theta, each test client by itself.
  std::vector<ClientMetrics> per_client(const HostVector<float>& theta);
  // The bins behind the ECE that the latest at() or marginal() gave; none for targets without
  // classes.
  const std::vector<ReliabilityBin>& reliability() const { return reliability_; }

 private:
  // Held-out examples, batch by batch. What at() gives is there until it is asked for the next.
  struct Batches {
    std::size_t count = 0;
    BatchAt at;
    std::function<std::size_t(std::size_t batch, std::size_t row)> example;  // among the held-out
  };
  Batches chosen(const Subsample& which);
  // This rank's of them.
  Batches shared(Batches all) const;
  // What all ranks have gathered.
  template <class Sums>
  void add_others(Sums& sums) const;
  const Batch& batch(std::size_t chunk);
  Batch gather(std::span<const std::size_t> examples);
  std::vector<double> predict(const HostVector<float>& theta, const Batch& batch,
                              const Batches& among, std::size_t number, const OwnIntercepts& own);
  OwnIntercepts own_intercepts_of(const Message& q) const;
  InterceptAt intercepts(const Batches& batches, const OwnIntercepts& own) const;
  Metrics metrics_of(const Scores& scores);

  const Dataset& data_;
  std::unique_ptr<Model> model_;
  std::size_t chunk_;          // examples of a batch
  std::vector<Batch> cached_;  // all test batches, if they fit
  Batch scratch_;
  std::vector<float> logits_;
  std::vector<ReliabilityBin> reliability_;  // of the latest at() or marginal()
  Ranks* ranks_ = nullptr;
};

}  // namespace fedep
