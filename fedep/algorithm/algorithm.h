// An algorithm: the cavity a client is given, what it needs of the client's run, how deltas are
// weighted. The delta follows from what it needs (delta.h). Everything else about a round is the same
// for all of them.
//
//   const Algorithm& algorithm = find_algorithm("fed_ep");
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fedep/algorithm/client_run.h"
#include "fedep/algorithm/settings.h"

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
  std::string_view title;  // for people
  std::string_view summary;
  CavityKind cavity;  // unless the recipe says otherwise
  Needs needs;
  bool point_estimate;     // messages have lambda = 1 and eta = theta: no precision is inferred
  bool pools_epochs;       // all epochs' examples shuffled together, not epoch by epoch
  bool averages_in_epoch;  // a sample is the average of its epoch's iterates
  WeightRule weight;       // unless the recipe says otherwise
};

// Every algorithm there is; one row each in registry.cpp.
std::span<const Algorithm> algorithms();

// Throws InputError that suggests the nearest name.
const Algorithm& find_algorithm(std::string_view name);

}  // namespace fedep
