// A task's rounds and scores on the GPU. A build without CUDA has this header too, and says what is
// missing (cuda_run_absent.cpp).
//
//   if (const std::string why = cuda_problem(); !why.empty()) throw InputError(why);
//   const auto cuda = make_cuda_run(recipe, *task, *home, ProductPrecision::tf32);
//   hooks.play = [&](ServerState& state, const Phase& phase) { return cuda->play(state, phase); };
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "fedep/cuda/network/cohort_model.h"
#include "fedep/round/play_round.h"
#include "fedep/round/site_store.h"
#include "fedep/sim/task.h"

namespace fedep {

class CudaRun {
 public:
  virtual ~CudaRun() = default;

  // Clients' factors, for the run's checkpoints.
  virtual SiteStore& sites() = 0;
  // RunHooks' (store/run.h).
  virtual RoundNumbers play(ServerState& state, const Phase& phase) = 0;
  virtual void bring_home(ServerState& state) = 0;
  virtual Metrics evaluate(const ServerState& state, bool last) = 0;
  // Of the latest evaluate().
  virtual Reliability reliability() const = 0;
};

// Empty if this build and machine can run on a GPU; else one line that says what is wrong.
std::string cuda_problem();
// "cuda NVIDIA H200 (tf32)"
std::string cuda_text(ProductPrecision precision);
// Empty, or one line for the log: why this recipe's clients run more slowly than others do.
std::string cuda_remark(const Recipe& recipe);
// "tf32", "float32"; throws InputError for others.
ProductPrecision find_precision(std::string_view name);

// Throws InputError for a task that runs on the CPU only, before anything is made for it.
void check_cuda_run(const Recipe& recipe, const Task& task);

// Everything given must outlive the result; `home` is where factors go when they are saved. Throws
// as check_cuda_run() does.
std::unique_ptr<CudaRun> make_cuda_run(const Recipe& recipe, const Task& task, SiteStore& home,
                                       ProductPrecision precision);

}  // namespace fedep
