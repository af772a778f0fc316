#include "fedep/sim/gpu/cuda_factor_gap.h"

#include <cstddef>
#include <vector>

#include "fedep/cuda/device/device_vector.h"
#include "fedep/cuda/round/factor_kernels.h"
#include "fedep/round/diagnosis/factor_gap.h"
#include "fedep/round/factor_clock.h"

namespace fedep {
namespace {

// The sum of all factors that it was given, in their order.
class FactorSum {
 public:
  explicit FactorSum(const SiteShape& shape) : shape_(shape), eta_(shape.size) {
    eta_.zero();
    if (!diagonal()) return;
    lambda_ = DeviceArray<double>(shape.size);
    lambda_.zero();
  }

  // `clocked`: its momentum, slot 0, has moved it meanwhile.
  void add(const DeviceSite& site, bool clocked, const MissedSteps& missed) {
    const auto momentum = [&](const float* slot) { return clocked ? slot : nullptr; };
    add({site.eta(shape_, 0), momentum(site.eta(shape_, 1)), missed}, eta_);
    if (diagonal()) {
      add({site.lambda(shape_, 0), momentum(site.lambda(shape_, 1)), missed}, lambda_);
    } else {
      const std::vector<float>& numbers = site.numbers;
      number_ += clocked ? caught_up(missed, numbers[0], numbers[1]) : numbers[0];
    }
  }

  // A message to the power of n.
  void add(const DeviceMessage& message, float n) {
    add({.part = message.eta().data(), .times = n}, eta_);
    if (diagonal()) {
      add({.part = message.lambda_vector().data(), .times = n}, lambda_);
    } else {
      number_ += n * message.lambda_scalar();
    }
  }

  std::vector<double> eta() const { return eta_.download(); }
  std::vector<double> lambda() const {
    return diagonal() ? lambda_.download() : std::vector<double>{number_};
  }

 private:
  bool diagonal() const { return shape_.family == Family::diagonal; }
  void add(const gpu::FactorPart& part, DeviceArray<double>& sum) {
    gpu::add_factor(part, shape_.size, sum.data(), device_stream());
  }

  SiteShape shape_;
  DeviceArray<double> eta_, lambda_;
  double number_ = 0;  // of lambda in an isotropic family
};

}  // namespace

std::optional<FactorGap> cuda_factor_gap(const ServerState& state, const Phase& phase,
                                         const Population& population, const DeviceSites& sites) {
  const SiteShape& shape = sites.shape();
  if (shape.size != state.global.size() || shape.family != state.global.family()) return {};
  const bool clocked = phase.follows_rounds();
  const DeviceMessage per_example = to_device(state.unvisited.per_example);
  FactorSum sum(shape);
  for (std::size_t k = 0; k < population.size(); ++k) {
    const bool visited = sites.look_on_gpu(population[k].key, [&](const DeviceSite& site) {
      sum.add(site, clocked,
              clocked ? missed_steps(phase.factor_optimizer, state.step_scales, site.steps)
                      : MissedSteps{});
    });
    if (!visited && per_example.size() > 0) sum.add(per_example, float(population[k].examples));
  }
  return factor_gap_of_sums(state, phase, sum.eta(), sum.lambda());
}

}  // namespace fedep
