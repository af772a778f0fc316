#include "fedep/optim/guard.h"

#include <algorithm>
#include <cmath>

namespace fedep {
namespace {

bool improper(float lambda) { return !(lambda > 0) || !std::isfinite(lambda); }

}  // namespace

void raise_to_floor(const Message& before, Message& after, float floor) {
  if (after.full()) {
    const HostVector<float> old =
        is_proper(before) ? mean(before) : HostVector<float>(after.size());
    raise_eigenvalues(after.eta(), after.lambda_packed(), old, double(floor));
    return;
  }
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

std::size_t count_improper(const Message& before, const Message& after) {
  const std::span<const float> old = before.lambda_span(), now = after.lambda_span();
  if (after.full()) {
    const auto is_zero = [](float x) { return x == 0; };
    const bool unknown = std::ranges::all_of(now, is_zero) && std::ranges::all_of(old, is_zero);
    return unknown ? 0 : count_not_positive(after.lambda_packed(), after.size());
  }
  std::size_t count = 0;
  for (std::size_t i = 0; i < now.size(); ++i) {
    const bool still_unknown = now[i] == 0 && old[old.size() == 1 ? 0 : i] == 0;
    count += improper(now[i]) && !still_unknown;
  }
  return after.isotropic() ? count * after.size() : count;
}

bool is_improper(const Message& before, const Message& after) {
  if (after.full() && is_positive_definite(after.lambda_packed(), after.size())) return false;
  return after.full() || count_improper(before, after) > 0;
}

}  // namespace fedep
