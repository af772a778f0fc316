// An algorithm: the cavity a client is given, what it needs of the client's run, how deltas are
// weighted, and what the server makes of their sum. The delta follows from what it needs (delta.h).
// Everything else about a round is the same for all of them. docs/algorithms.md has the formulas.
//
//   const Algorithm& algorithm = find_algorithm("fed_ep");
#pragma once

#include <array>
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
  StepRule step = StepRule::optimizer;
  bool plain_steps = false;  // q and factors move by what is sent: no optimizer
  bool needs_prior = false;
  bool infers_precision = true;  // else q's stays the prior's
  // The inference methods with which it is what its name says; none: all.
  std::array<std::string_view, 2> methods = {};
};

// Every algorithm there is; one row each in registry.cpp.
std::span<const Algorithm> algorithms();

// Throws InputError that suggests the nearest name.
const Algorithm& find_algorithm(std::string_view name);

}  // namespace fedep
