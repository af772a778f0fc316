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
// after) does not count. In the full family: directions, that is eigenvalues of Λ.
std::size_t count_improper(const Message& before, const Message& after);
// Whether there is any, found out without counting where that is cheaper.
bool is_improper(const Message& before, const Message& after);
template <Storage V>
bool is_improper(const Gaussian<V>& before, const Gaussian<V>& after) {
  return count_improper(before, after) > 0;
}

// Precisions below the floor are raised to it. A positive one keeps its mean, an improper one gets
// the mean that `before` had there (0 if it had none). In the full family: eigenvalues, along their
// directions.
void raise_to_floor(const Message& before, Message& after, float floor);

// Changes `after` if the mode asks for it. back_off tries scale = 0.8, 0.64, … down to 1e-6 and
// then gives up: then, and always in mode skip, `after` becomes `before`. Other storages bring
// count_improper() and raise_to_floor().
template <Storage V>
GuardOutcome guard(const GuardSettings& settings, const Gaussian<V>& before, Gaussian<V>& after) {
  constexpr double kShrink = 0.8;  // as EP implementations for hierarchical models do (Vehtari+20)
  constexpr double kSmallestScale = 1e-6;
  GuardOutcome outcome{.improper = count_improper(before, after)};
  if (settings.mode == GuardMode::floor) raise_to_floor(before, after, float(settings.floor));
  if (outcome.improper == 0) return outcome;
  switch (settings.mode) {
    case GuardMode::count:
    case GuardMode::floor:
      return outcome;
    case GuardMode::back_off: {
      const Gaussian<V> wanted = after;
      for (double scale = kShrink; scale >= kSmallestScale; scale *= kShrink) {
        after = product(before, power(quotient(wanted, before), typename V::Scalar(scale)));
        if (!is_improper(before, after)) {
          outcome.scale = scale;
          return outcome;
        }
      }
      [[fallthrough]];
    }
    case GuardMode::skip:
      after = before;
      outcome.scale = 0;
      outcome.skipped = true;
  }
  return outcome;
}

}  // namespace fedep
