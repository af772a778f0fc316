// The server's steps become shorter as a phase ends, so that what clients sampled last weighs less:
// a linear schedule from 1 on.
#pragma once

#include <cstdint>

#include "fedep/algorithm/schedule.h"
#include "fedep/algorithm/settings.h"

namespace fedep {

// The part of a step that is left in `round`, which counts from 0 within the phase. It does not
// depend on how long the phase is: a run that stops early and goes on plays the same rounds.
inline double cooldown(const CooldownSettings& settings, std::int64_t round) {
  const RoundSchedule schedule{.kind = ScheduleKind::linear,
                               .after = settings.after,
                               .rounds = settings.rounds,
                               .from = 1,
                               .to = settings.to};
  return scheduled_in_round(schedule, round, 0);
}

}  // namespace fedep
