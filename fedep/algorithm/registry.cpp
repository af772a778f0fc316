#include <array>

#include "fedep/algorithm/algorithm.h"
#include "fedep/algorithm/fed_avg.h"
#include "fedep/algorithm/fed_ep.h"
#include "fedep/algorithm/fed_pa.h"
#include "fedep/message/nearest.h"

namespace fedep {
namespace {

Message last_iterate_delta(const ClientRun& run, const Message& global, const DeltaSettings&) {
  return fed_avg_delta(run.last, global);
}

// Before the first mixed-in sample FedPA is FedAvg.
Message samples_delta(const ClientRun& run, const Message& global, const DeltaSettings& settings) {
  if (run.samples.empty()) return fed_avg_delta(run.last, global);
  return fed_pa_delta(std::span<const HostVector<float>>(run.samples), settings.rho, global);
}

Message tilted_delta(const ClientRun& run, const Message& global, const DeltaSettings&) {
  return fed_ep_delta(run.tilted, global);
}

constexpr std::array kAlgorithms{
    Algorithm{.name = "fed_avg",
              .summary = "federated averaging of the clients' last iterates",
              .cavity = CavityKind::flat,
              .needs = Needs::last_iterate,
              .point_estimate = true,
              .pools_epochs = true,
              .averages_in_epoch = false,
              .weight = WeightRule::examples,
              .delta = last_iterate_delta},
    Algorithm{.name = "fed_pa",
              .summary = "posterior averaging: natural gradients of the local posteriors",
              .cavity = CavityKind::flat,
              .needs = Needs::samples,
              .point_estimate = true,
              .pools_epochs = false,
              .averages_in_epoch = true,
              .weight = WeightRule::examples,
              .delta = samples_delta},
    Algorithm{.name = "fed_ep",
              .summary = "expectation propagation, clients remember their factors",
              .cavity = CavityKind::own_factor,
              .needs = Needs::tilted,
              .point_estimate = false,
              .pools_epochs = false,
              .averages_in_epoch = false,
              .weight = WeightRule::equal,
              .delta = tilted_delta},
    Algorithm{.name = "fed_sep",
              .summary = "stochastic expectation propagation, clients without memory",
              .cavity = CavityKind::share,
              .needs = Needs::tilted,
              .point_estimate = false,
              .pools_epochs = false,
              .averages_in_epoch = false,
              .weight = WeightRule::equal,
              .delta = tilted_delta},
};

}  // namespace

std::span<const Algorithm> algorithms() { return kAlgorithms; }

const Algorithm& find_algorithm(std::string_view name) {
  for (const Algorithm& algorithm : kAlgorithms) {
    if (algorithm.name == name) return algorithm;
  }
  std::vector<std::string_view> names;
  for (const Algorithm& algorithm : kAlgorithms) names.push_back(algorithm.name);
  throw InputError(unknown_name("algorithm", name, names));
}

}  // namespace fedep
