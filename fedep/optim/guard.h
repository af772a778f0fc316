// The positivity guard. A cavity (before: q, after: q / q_k) and a new global (before: q, after: q
// × step) must have positive precisions; the reference never looks. `guard` looks, does what the
// mode says and tells what it did.
//
//   const GuardOutcome outcome = guard(settings, before, after);
//   counters.improper += outcome.improper;
#pragma once

#include <cstddef>

#include "fedep/message/gaussian.h"
#include "fedep/optim/settings.h"

namespace fedep {

struct GuardOutcome {
  std::size_t improper = 0;  // coordinates of `after` whose precision was not positive and finite
  double scale = 1.0;        // how much of the move from `before` to `after` was kept
  bool skipped = false;      // `after` was put back to `before`

  bool operator==(const GuardOutcome&) const = default;
};

// Coordinates of `after` without a positive, finite precision; an improper isotropic message has
// all of them. A coordinate about which nobody has said anything yet (precision zero before and
// after) does not count.
std::size_t count_improper(const Message& before, const Message& after);

// Changes `after` if the mode asks for it. back_off tries scale = 0.8, 0.64, … down to 1e-6 and
// then gives up: then, and always in mode skip, `after` becomes `before`.
GuardOutcome guard(const GuardSettings& settings, const Message& before, Message& after);

}  // namespace fedep
