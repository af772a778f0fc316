#include <array>

#include "fedep/algorithm/algorithm.h"
#include "fedep/message/table.h"

namespace fedep {
namespace {

constexpr std::array kAlgorithms{
    Algorithm{.name = "fed_avg",
              .title = "FedAvg",
              .summary = "federated averaging of the clients' last iterates",
              .cavity = CavityKind::flat,
              .needs = Needs::last_iterate,
              .point_estimate = true,
              .pools_epochs = true,
              .averages_in_epoch = false,
              .weight = WeightRule::examples},
    Algorithm{.name = "fed_pa",
              .title = "FedPA",
              .summary = "posterior averaging: natural gradients of the local posteriors",
              .cavity = CavityKind::flat,
              .needs = Needs::samples,
              .point_estimate = true,
              .pools_epochs = false,
              .averages_in_epoch = true,
              .weight = WeightRule::examples},
    Algorithm{.name = "fed_ep",
              .title = "FedEP",
              .summary = "expectation propagation, clients remember their factors",
              .cavity = CavityKind::own_factor,
              .needs = Needs::tilted,
              .point_estimate = false,
              .pools_epochs = false,
              .averages_in_epoch = false,
              .weight = WeightRule::equal},
    Algorithm{.name = "fed_sep",
              .title = "FedSEP",
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
  return find_row("algorithm", kAlgorithms, name);
}

}  // namespace fedep
