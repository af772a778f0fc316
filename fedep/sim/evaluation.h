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

#include "fedep/data/dataset.h"
#include "fedep/message/gaussian.h"
#include "fedep/metric/metrics.h"
#include "fedep/model/model.h"
#include "fedep/sim/scores.h"

namespace fedep {

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

// How test examples pass through memory.
struct EvaluationMemory {
  std::size_t chunk = 500;                         // examples predicted at a time
  std::size_t cache_bytes = std::size_t(1) << 29;  // features are kept if all of them fit
};

class Evaluation {
 public:
  Evaluation(const Dataset& data, std::unique_ptr<Model> model,
             const EvaluationMemory& memory = {});

  Metrics at(const HostVector<float>& theta, const Subsample& which = {});
  // `q` must be proper. Names end in _marginal.
  Metrics marginal(const Message& q, const MarginalDraws& draws);
  // At theta, each test client by itself.
  std::vector<ClientMetrics> per_client(const HostVector<float>& theta);
  // The bins behind the ECE that the latest at() or marginal() gave; none for targets without
  // classes.
  const std::vector<ReliabilityBin>& reliability() const { return reliability_; }

 private:
  Metrics average_over(const std::vector<HostVector<float>>& thetas, const Subsample& which);
  struct Predictions {
    std::vector<double> mean;    // over the draws of the weights
    std::vector<double> spread;  // their variance; empty for one draw, and for probabilities
  };
  Predictions predict(const std::vector<HostVector<float>>& thetas, const Batch& batch);
  const Batch& batch(std::size_t chunk);
  Batch gather(std::span<const std::size_t> examples);

  const Dataset& data_;
  std::unique_ptr<Model> model_;
  std::size_t chunk_;          // examples of a batch
  std::vector<Batch> cached_;  // all test batches, if they fit
  Batch scratch_;
  std::vector<float> logits_;
  std::vector<ReliabilityBin> reliability_;  // of the latest at() or marginal()
};

}  // namespace fedep
