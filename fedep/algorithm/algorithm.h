// An algorithm: the cavity a client is given, what it needs of the client's run, the delta made of
// that, how deltas are weighted. Everything else about a round is the same for all of them.
//
//   const Algorithm& algorithm = find_algorithm("fed_ep");
//   const Message delta = algorithm.delta(run, global, {.rho = 0.1});
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fedep/algorithm/client_run.h"
#include "fedep/algorithm/settings.h"
#include "fedep/message/gaussian.h"

namespace fedep {

enum class Needs {
  last_iterate,  // ClientRun::last
  samples,       // ClientRun::samples, and last while there are none
  tilted,        // ClientRun::tilted
};

struct DeltaSettings {
  double rho = 0.1;  // FedPA's shrinkage
};

struct Algorithm {
  std::string_view name;
  std::string_view summary;
  CavityKind cavity;  // unless the recipe says otherwise
  Needs needs;
  bool point_estimate;     // messages have lambda = 1 and eta = theta: no precision is inferred
  bool pools_epochs;       // all epochs' examples shuffled together, not epoch by epoch
  bool averages_in_epoch;  // a sample is the average of its epoch's iterates
  WeightRule weight;       // unless the recipe says otherwise
  Message (*delta)(const ClientRun& run, const Message& global, const DeltaSettings& settings);
};

// Every algorithm there is; one row each in registry.cpp.
std::span<const Algorithm> algorithms();

// Throws InputError that suggests the nearest name.
const Algorithm& find_algorithm(std::string_view name);

}  // namespace fedep
