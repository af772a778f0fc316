// The server's steps become shorter as a phase ends, so that what clients sampled last weighs less.
#pragma once

#include <algorithm>
#include <cstdint>

#include "fedep/algorithm/settings.h"

namespace fedep {

// The part of a step that is left in `round`, which counts from 0 within the phase. It does not
// depend on how long the phase is: a run that stops early and goes on plays the same rounds.
inline double cooldown(const CooldownSettings& settings, std::int64_t round) {
  const double gone = double(round - settings.after + 1) / double(settings.rounds);
  return 1 - (1 - settings.to) * std::clamp(gone, 0.0, 1.0);
}

}  // namespace fedep
