// Which examples a cohort's steps take, and where their random numbers are: the orders of sim/chain/chain
// and sim/chain/fisher_pass for many clients, as tables for the GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fedep/cuda/device/coordinates.h"
#include "fedep/cuda/device/device_data.h"
#include "fedep/sim/chain/chain.h"
#include "fedep/sim/gpu/cuda_cohort.h"

namespace fedep {

// What a cohort's batches have room for.
struct BatchRoom {
  std::size_t clients;
  std::size_t examples;  // of a client in a batch
};

// What the chains and the Fisher passes of a cohort share. References outlive both.
struct CudaParts {
  CohortModel& model;
  DeviceData& data;
  const Coordinates& coordinates;
  std::size_t clients;   // there is room for
  std::size_t examples;  // of a client in a batch

  BatchRoom room() const { return {clients, examples}; }
};

// One round's visits and how their chains run.
struct CohortRound {
  std::uint64_t seed;
  std::int64_t round;
  const ChainSettings& settings;
  const std::vector<CohortVisit>& visits;

  // The address of something random in a visit, as visit_address() has it.
  Address address(std::size_t row, Purpose purpose, std::size_t step) const;
};

// All epochs of a round's chains. In an epoch that is over for a client it rests until the longest
// is; its own steps are counted by itself.
struct ChainOrder {
  CohortOrder order;
  std::size_t epoch_length = 0;          // steps of the cohort
  std::vector<std::size_t> own_batches;  // of each row in an epoch
  std::vector<float> rates;              // [steps, clients], where they are scheduled
};
ChainOrder chain_order(const BatchRoom& room, const CohortRound& round);

// The pass that collects squared gradients. Every client has `at_once` neighbouring rows of the
// GPU's batches, which together fill it where one each would not.
struct FisherRows {
  // What a client's rows are: its next minibatches, or so many draws for one (which is then made
  // that many times).
  enum class Of { minibatches, draws } of = Of::minibatches;
  std::size_t at_once = 1;

  // Minibatch and draw of row `lane` of a client, in step `step` when draws from `draw` on are
  // made.
  int minibatch(std::size_t step, std::size_t lane) const {
    return int(of == Of::minibatches ? step * at_once + lane : step);
  }
  int draw(int draw, std::size_t lane) const {
    return of == Of::minibatches ? draw : draw + int(lane);
  }
  bool operator==(const FisherRows&) const = default;
};

std::vector<Minibatches> fisher_passes(const CohortRound& round, int epochs);  // of the clients
CohortOrder fisher_order(const BatchRoom& room, const CohortRound& round,
                         const std::vector<Minibatches>& passes, const FisherRows& rows);

}  // namespace fedep
