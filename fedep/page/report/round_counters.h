// What went wrong or was held back in a run's rounds, added up as they come.
#pragma once

#include <cstdint>

#include "fedep/store/log/history.h"

namespace fedep {

struct RoundCounter {
  double total = 0;
  std::int64_t rounds = 0;  // that had some

  bool operator==(const RoundCounter&) const = default;
};

struct RoundCounters {
  RoundCounter dropped, outside_grid, diverged, skipped, clipped, guarded;
  RoundCounter backed_off;  // the server took a part of its step

  void add(const RoundRecord& round);
  bool operator==(const RoundCounters&) const = default;
};

}  // namespace fedep
