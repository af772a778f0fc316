// The laws of a round (round/test_round_laws.h) with messages on a GPU. Clients' inference is a formula
// that main memory evaluates; all else happens there.

#include <gtest/gtest.h>

#include "fedep/round/test_optimizer_laws.h"
#include "fedep/round/test_round_faults.h"
#include "fedep/round/test_round_laws.h"
#include "fedep/sim/gpu/cuda_rounds.h"

namespace fedep {
namespace {

class GaussiansForGpu final : public CudaInference {
 public:
  explicit GaussiansForGpu(const GaussianClients& clients) : clients_(clients) {}

  std::vector<DeviceRun> infer(std::uint64_t, std::int64_t, const Phase& phase,
                               const DeviceVector& start, std::vector<CohortVisit> visits,
                               std::vector<VisitNumbers>& numbers) override {
    std::vector<DeviceRun> runs;
    for (std::size_t i = 0; i < visits.size(); ++i) {
      const ClientRun here = clients_.infer(visits[i].client.key, phase, to_host(visits[i].cavity),
                                            to_host(start), numbers[i]);
      DeviceRun run;
      if (here.last.size() > 0) run.last = to_device(here.last);
      run.tilted = to_device(here.tilted);
      runs.push_back(std::move(run));
    }
    return runs;
  }

 private:
  const GaussianClients& clients_;
};

struct OnGpu {
  using Vector = DeviceVector;

  static std::string problem() { return device_problem(); }
  static DeviceServerState there(const ServerState& state) {
    return problem().empty() ? to_device(state) : DeviceServerState{};
  }
  static ServerState home(const DeviceServerState& state) {
    ServerState here;
    here.phase = state.phase;
    here.initial = to_host(state.initial);
    here.prior = to_host(state.prior);
    here.unvisited = {to_host(state.unvisited.per_example)};
    bring_home(state, here);
    return here;
  }

  struct Parts {
    Parts(const Population& population, GaussianClients& clients)
        : inference(clients), executor(population, inference, &device_sites) {}
    SiteStore& sites() { return device_sites; }

    std::unique_ptr<SiteStore> store = make_memory_store();
    // Room for two states on the GPU, the rest comes and goes.
    DeviceSites device_sites{*store, 2 * SiteShape{3, Family::diagonal, 0}.bytes()};
    GaussiansForGpu inference;
    CudaExecutor executor;
  };
};

INSTANTIATE_TYPED_TEST_SUITE_P(Cuda, RoundLaws, OnGpu);
INSTANTIATE_TYPED_TEST_SUITE_P(Cuda, RoundFaults, OnGpu);
INSTANTIATE_TYPED_TEST_SUITE_P(Cuda, OptimizerLaws, OnGpu);

}  // namespace
}  // namespace fedep
