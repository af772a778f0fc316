#include "app/bench/bench_rounds.h"
#include "fedep/message/error.h"

namespace fedep {

RoundTimes bench_rounds_on_gpu(const Dataset&, const BenchPlan&) {
  throw InputError("--device cuda needs a build with FEDEP_WITH_CUDA=ON, but this one is without");
}

}  // namespace fedep
