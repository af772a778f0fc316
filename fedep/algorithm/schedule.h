// How a quantity changes over the rounds of a phase, or over the steps of a client's visit: what it
// is multiplied by.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "fedep/algorithm/settings.h"

namespace fedep {

// In the i-th (from 0) of `count` steps or rounds; before them `from`, afterwards `to`.
template <class Schedule>
double scheduled(const Schedule& s, std::int64_t i, std::int64_t count) {
  const double gone =
      std::clamp(double(i + 1) / double(std::max<std::int64_t>(count, 1)), 0.0, 1.0);
  switch (s.kind) {
    case ScheduleKind::constant:
      return s.from;
    case ScheduleKind::linear:
      return s.from - (s.from - s.to) * gone;
    case ScheduleKind::cosine:
      return s.to + (s.from - s.to) * (1 + std::cos(std::numbers::pi * gone)) / 2;
    case ScheduleKind::
        steps: {  // levels 0 … falls, equally long: no more than there are steps or rounds
      if (i < 0) return s.from;
      const std::int64_t falls = std::min<std::int64_t>(s.steps, count - 1);
      if (falls <= 0) return s.to;
      const std::int64_t level = std::min((falls + 1) * i / count, falls);
      const double part = double(level) / double(falls);
      return s.from * std::pow(s.to / s.from, part);
    }
  }
  return 1;
}

// `round` counts from 0 within its phase of `rounds`.
inline double scheduled_in_round(const RoundSchedule& s, std::int64_t round, std::int64_t rounds) {
  return scheduled(s, round - s.after, s.rounds > 0 ? s.rounds : rounds - s.after);
}

}  // namespace fedep
