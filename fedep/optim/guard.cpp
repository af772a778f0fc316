#include "fedep/optim/guard.h"

#include <cmath>

namespace fedep {
namespace {

constexpr double kShrink = 0.8;  // as EP implementations for hierarchical models do (Vehtari+20)
constexpr double kSmallestScale = 1e-6;

bool improper(float lambda) { return !(lambda > 0) || !std::isfinite(lambda); }

Message blend(const Message& before, const Message& after, double scale) {
  return product(before, power(quotient(after, before), float(scale)));
}

// Precisions below the floor are raised to it. A positive one keeps its mean, an improper one gets
// the mean that `before` had there (0 if it had none).
void raise_to_floor(const Message& before, Message& after, float floor) {
  const auto mean_before = [&](std::size_t i) {
    const float lambda = before.isotropic() ? before.lambda_scalar() : before.lambda_vector()[i];
    return improper(lambda) ? 0.0f : before.eta()[i] / lambda;
  };
  if (after.isotropic()) {
    const float lambda = after.lambda_scalar();
    if (!improper(lambda) && lambda >= floor) return;
    for (std::size_t i = 0; i < after.size(); ++i) {
      after.eta()[i] = improper(lambda) ? floor * mean_before(i) : after.eta()[i] / lambda * floor;
    }
    after.lambda_scalar() = floor;
    return;
  }
  for (std::size_t i = 0; i < after.size(); ++i) {
    float& lambda = after.lambda_vector()[i];
    if (!improper(lambda) && lambda >= floor) continue;
    after.eta()[i] = improper(lambda) ? floor * mean_before(i) : after.eta()[i] / lambda * floor;
    lambda = floor;
  }
}

}  // namespace

std::size_t count_improper(const Message& before, const Message& after) {
  const std::span<const float> old = before.lambda_span(), now = after.lambda_span();
  std::size_t count = 0;
  for (std::size_t i = 0; i < now.size(); ++i) {
    const bool still_unknown = now[i] == 0 && old[old.size() == 1 ? 0 : i] == 0;
    count += improper(now[i]) && !still_unknown;
  }
  return after.isotropic() ? count * after.size() : count;
}

GuardOutcome guard(const GuardSettings& settings, const Message& before, Message& after) {
  GuardOutcome outcome{.improper = count_improper(before, after)};
  if (settings.mode == GuardMode::floor) raise_to_floor(before, after, float(settings.floor));
  if (outcome.improper == 0) return outcome;
  const Message wanted = after;
  switch (settings.mode) {
    case GuardMode::count:
    case GuardMode::floor:
      return outcome;
    case GuardMode::back_off:
      for (double scale = kShrink; scale >= kSmallestScale; scale *= kShrink) {
        after = blend(before, wanted, scale);
        if (count_improper(before, after) == 0) {
          outcome.scale = scale;
          return outcome;
        }
      }
      [[fallthrough]];
    case GuardMode::skip:
      after = before;
      outcome.scale = 0;
      outcome.skipped = true;
  }
  return outcome;
}

}  // namespace fedep
