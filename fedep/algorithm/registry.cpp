#include <array>

#include "fedep/algorithm/algorithm.h"
#include "fedep/message/error.h"
#include "fedep/message/nearest.h"

namespace fedep {
namespace {

constexpr std::array kAlgorithms{
    Algorithm{.name = "fed_avg",
              .summary = "federated averaging of the clients' last iterates",
              .cavity = CavityKind::flat,
              .needs = Needs::last_iterate,
              .point_estimate = true,
              .pools_epochs = true,
              .averages_in_epoch = false,
              .weight = WeightRule::examples},
    Algorithm{.name = "fed_pa",
              .summary = "posterior averaging: natural gradients of the local posteriors",
              .cavity = CavityKind::flat,
              .needs = Needs::samples,
              .point_estimate = true,
              .pools_epochs = false,
              .averages_in_epoch = true,
              .weight = WeightRule::examples},
    Algorithm{.name = "fed_ep",
              .summary = "expectation propagation, clients remember their factors",
              .cavity = CavityKind::own_factor,
              .needs = Needs::tilted,
              .point_estimate = false,
              .pools_epochs = false,
              .averages_in_epoch = false,
              .weight = WeightRule::equal},
    Algorithm{.name = "fed_sep",
              .summary = "stochastic expectation propagation, clients without memory",
              .cavity = CavityKind::share,
              .needs = Needs::tilted,
              .point_estimate = false,
              .pools_epochs = false,
              .averages_in_epoch = false,
              .weight = WeightRule::equal},
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
