// Factors on the server's clock (phase.factor_clock = "round"; optim/clocked_step.h): with momentum a
// factor moves in every round in which the server stepped, so that q stays the product q_0 Π q_k. A
// visit makes up for the rounds since the last one before it forms its cavity. Rounds that were
// skipped, or in which nobody answered, do not count. A state's optimizer.steps says how many of the
// server's steps it has in it.
#pragma once

#include <cstdint>
#include <span>

#include "fedep/optim/clocked_step.h"
#include "fedep/round/phase.h"
#include "fedep/round/site_store.h"
#include "fedep/round/task.h"

namespace fedep {

// What a state with `since` of the server's steps in it has missed. `scales`: s c of each of the
// phase's. Throws InputError for a state that is ahead of the server.
MissedSteps missed_steps(const OptimizerSettings& optimizer, std::span<const double> scales,
                         std::int64_t since);

// The state as it is now.
void catch_up(const OptimizerSettings& optimizer, std::span<const double> scales, SiteState& state);

// The step of a client whose answer was taken in a round, of which the server kept a part.
ClockedStep clocked_step(const Phase& phase, double scale, const StepPart& part);

// The state that was proposed as if the server would take all of its step, corrected for what it
// took; `before` has caught up.
void settle_on_clock(const ClockedStep& step, const SiteState& before, SiteState& proposed);

}  // namespace fedep
