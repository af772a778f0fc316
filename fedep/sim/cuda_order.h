// Which examples a cohort's steps take, and where their random numbers are: the orders of sim/chain
// and sim/fisher_pass for many clients, as tables for the GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fedep/cuda/coordinates.h"
#include "fedep/cuda/device_data.h"
#include "fedep/sim/chain.h"
#include "fedep/sim/cuda_cohort.h"

namespace fedep {

// What the chains and the Fisher passes of a cohort share. References outlive both.
struct CudaParts {
  CohortModel& model;
  DeviceData& data;
  const Coordinates& coordinates;
  std::size_t clients;   // rows there is room for
  std::size_t examples;  // of a client in a batch
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
};
ChainOrder chain_order(const CudaParts& parts, const CohortRound& round);

// Batches of the pass that collects squared gradients, over so many epochs.
struct FisherOrder {
  CohortOrder order;
  std::vector<Minibatches> passes;  // of the rows
};
FisherOrder fisher_order(const CudaParts& parts, const CohortRound& round, int epochs);

}  // namespace fedep
