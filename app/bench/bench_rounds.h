// Some rounds of a recipe's last phase, played for their time alone.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

#include "fedep/config/recipe.h"
#include "fedep/cuda/network/cohort_model.h"
#include "fedep/data/dataset.h"

namespace fedep {

struct BenchPlan {
  Recipe recipe;
  int warm_up = 1;  // rounds before the clock starts
  int rounds = 3;   // that are timed
  bool evaluate = true;
  ProductPrecision precision = ProductPrecision::tf32;  // on a GPU
};

// Seconds and counts over all timed rounds.
struct RoundTimes {
  std::string device;
  std::size_t clients = 0;  // a round
  std::size_t rounds = 0;
  std::size_t steps = 0;  // of all clients
  double training = 0;    // SGD steps; on the CPU all of local inference
  double other = 0;       // the rest: on the GPU the methods' arithmetic; deltas, the server
  double evaluation = 0;  // of `evaluations`
  std::size_t evaluations = 0;
  // GPU only.
  double copy_rate = 0;         // bytes a second, measured
  double product_rate = 0;      // operations a second, nominal
  std::size_t peak_memory = 0;  // bytes
};

RoundTimes bench_rounds_on_cpu(const Dataset& data, const BenchPlan& plan);
// Throws InputError if this build or this machine has no GPU.
RoundTimes bench_rounds_on_gpu(const Dataset& data, const BenchPlan& plan);

}  // namespace fedep
