// One client's chain: SGD with momentum on its tilted distribution (see inference/cohort.h), epoch
// by epoch, on one core. Everything random in it is addressed by (seed, round, client, step).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "fedep/config/recipe.h"
#include "fedep/data/dataset.h"
#include "fedep/message/gaussian.h"
#include "fedep/model/model.h"
#include "fedep/round/host_rows.h"
#include "fedep/sim/chain/label_tape.h"

namespace fedep {

// How a phase's chains run, the same for all clients.
struct ChainSettings {
  ClientSettings client;
  bool augment = false;
  bool pooled = false;          // all epochs' examples shuffled together, as one long epoch
  bool averages = false;        // keep the average of an epoch's iterates
  bool keeps_variance = false;  // accumulate second moments too
  bool langevin = false;
  // The client's rate: what it is multiplied by in this round, and in a visit's steps. `scheduled`:
  // it changes, over rounds or steps.
  double rate = 1;
  std::optional<VisitSchedule> visit_rate = {};
  bool scheduled = false;
  LabelSampler label_sampler = LabelSampler::model;
  LabelTape* tape = nullptr;  // where labels drawn from the model are recorded; null: nowhere
};

// Throws InputError for a client optimizer that chains do not run.
void check_chain(const ChainSettings& settings);

// Whether a client with so many examples has a batch; `pooled` as in ChainSettings.
bool makes_steps(const ClientSettings& client, bool pooled, std::size_t examples);

// Steps that a client with so many examples makes in a visit.
std::size_t steps_of_visit(const ClientSettings& client, bool pooled, std::size_t examples);

// The rate of the i-th (from 0) of a visit's `steps`.
float rate_of_step(const ChainSettings& settings, std::size_t i, std::size_t steps);

// Indices of the examples of each minibatch of an epoch, in order.
class Minibatches {
 public:
  // `copies` of `examples` examples, shuffled together, in batches of `batch`.
  Minibatches(const Address& address, std::size_t examples, std::size_t copies, std::size_t batch,
              Remainder remainder);

  std::size_t size() const { return count_; }
  std::span<const std::uint32_t> operator[](std::size_t i) const;

 private:
  std::vector<std::uint32_t> order_;
  std::size_t batch_;
  std::size_t count_;
};

// Where a chain's samples of a weight without any gradient lie on average: by_start θ_0 + by_eta η_p.
struct FreeMean {
  double by_start = 1, by_eta = 0;
};

class Chain {
 public:
  virtual ~Chain() = default;

  virtual void run_epoch(int epoch) = 0;
  virtual HostVector<float> iterate() const = 0;
  virtual HostVector<float> epoch_average() const = 0;
  virtual void accumulate_moments() = 0;
  virtual HostVector<float> mean() const = 0;
  virtual HostVector<float> variance() const = 0;
  virtual std::size_t steps() const = 0;
  virtual double loss_sum() const = 0;  // of the steps' mean losses
  // Where one law holds of all weights without a gradient: one precision, one rate, no noise.
  virtual std::optional<FreeMean> free_mean() const { return std::nullopt; }
};

struct ChainInput {
  const Dataset& data;
  std::size_t client;  // its index in the data set
  const Visit& visit;  // seed, round, id, cavity, start
  const ChainSettings& settings;
};

// The chain that suits the model.
std::unique_ptr<Chain> make_chain(Model& model, const ChainInput& input);

// Works with every model; updates the model's live coordinates step by step and all others once an
// epoch.
std::unique_ptr<Chain> make_dense_chain(Model& model, const ChainInput& input);

// The address of something random in a visit.
Address visit_address(const Visit& visit, Purpose purpose, std::size_t step);

}  // namespace fedep
