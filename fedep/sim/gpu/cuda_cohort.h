// The chains of a round's clients on the GPU, all at once: stacked weights, one captured step for
// everybody, and the inference methods of inference/ over them. What sim/chain/chain and sim/chain/cpu_cohort
// do on a core is the specification, addresses of all random numbers included.
//
//   const auto inference = make_cuda_inference(data, recipe, ProductPrecision::tf32);
//   const auto runs = inference->infer(seed, round, phase, start, visits, numbers);
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "fedep/algorithm/client_run.h"
#include "fedep/config/recipe.h"
#include "fedep/cuda/device/device_vector.h"
#include "fedep/cuda/network/cohort_model.h"
#include "fedep/data/dataset.h"
#include "fedep/round/phase.h"
#include "fedep/round/population.h"
#include "fedep/round/task.h"

namespace fedep {

struct CohortVisit {
  const ClientInfo& client;
  std::size_t index;  // of the client in the data set
  DeviceMessage cavity;
};

class CudaInference {
 public:
  virtual ~CudaInference() = default;

  // Chains of all these clients from `start` on; run i belongs to visits[i] and has what
  // phase.algorithm->needs names. Fills steps and loss_sum of numbers[i].
  virtual std::vector<ClientRunOf<DeviceVector>> infer(std::uint64_t seed, std::int64_t round,
                                                       const Phase& phase,
                                                       const DeviceVector& start,
                                                       std::vector<CohortVisit> visits,
                                                       std::vector<VisitNumbers>& numbers) = 0;

  // To be called now and then by the thread that called infer(), while that waits for the GPU.
  void call_meanwhile(std::function<void()> meanwhile) { meanwhile_ = std::move(meanwhile); }

  // How long the GPU spent on the SGD steps of the latest infer(), moments of their iterates
  // included. Waits.
  virtual double training_seconds() const { return 0; }

 protected:
  std::function<void()> meanwhile_;
};

class LabelTape;

// What is referred to must outlive the result. Throws InputError for data, models and settings that
// run on the CPU only. With a `tape` labels are not drawn from the model but taken from there, for
// tests.
std::unique_ptr<CudaInference> make_cuda_inference(const Dataset& data, const Recipe& recipe,
                                                   ProductPrecision precision,
                                                   const LabelTape* tape = nullptr);

}  // namespace fedep
