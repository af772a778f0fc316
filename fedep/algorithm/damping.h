// The damping δ of a round, the same on the server and on its clients.
#pragma once

#include <algorithm>
#include <cstddef>

#include "fedep/algorithm/settings.h"
#include "fedep/message/check.h"

namespace fedep {

// K = `asked` counts the clients the round asked, not those that answered; `round` counts from 0
// within the phase.
inline double damping(const DampingSettings& settings, std::size_t asked, std::size_t round) {
  check_positive("damping", "clients asked", double(asked));
  const double k = double(asked);
  switch (settings.rule) {
    case DampingRule::one_over_k:
      return 1 / k;
    case DampingRule::constant:
      check_positive("damping", "constant", settings.constant);
      return settings.constant;
    case DampingRule::none:
      return 1;
    case DampingRule::decaying: {  // K values from 1/2 down to 1/K, then 1/K for ever
      if (asked == 1) return 0.5;
      const double i = double(std::min(asked - 1, round));
      return 0.5 + (1 / k - 0.5) * i / (k - 1);
    }
  }
  return 1;
}

}  // namespace fedep
