#include "fedep/round/factor_clock.h"

#include <cstddef>

#include "fedep/message/check.h"

namespace fedep {
namespace {

struct Element {
  float &t, &v;
};

template <class Change>
void for_each_element(SiteState& state, const Change& change) {
  check_same_size("factor on the server's clock", "optimizer's slots", 1,
                  state.optimizer.slots.size());
  Message& slot = state.optimizer.slots[0];
  const auto eta = state.factor.eta().span(), eta_slot = slot.eta().span();
  for (std::size_t i = 0; i < eta.size(); ++i) change(0, i, Element{eta[i], eta_slot[i]});
  const auto lambda = state.factor.lambda_span(), lambda_slot = slot.lambda_span();
  for (std::size_t i = 0; i < lambda.size(); ++i) change(1, i, Element{lambda[i], lambda_slot[i]});
}

}  // namespace

MissedSteps missed_steps(const OptimizerSettings& optimizer, std::span<const double> scales,
                         std::int64_t since) {
  if (since < 0 || since > std::int64_t(scales.size())) {
    throw InputError(
        fmt::format("a client's factor must be at most {} of the server's steps old, but is at {}",
                    scales.size(), since));
  }
  const double m = double(float(optimizer.momentum));  // as the server's steps have it
  double kept = 1, moved = 0;
  for (const double scale : scales.subspan(std::size_t(since))) {
    kept *= m;
    moved += kept * scale;
  }
  return {.moved = float(optimizer.lr * moved), .kept = float(kept)};
}

void catch_up(const OptimizerSettings& optimizer, std::span<const double> scales,
              SiteState& state) {
  const MissedSteps missed = missed_steps(optimizer, scales, state.optimizer.steps);
  for_each_element(state, [&](int, std::size_t, Element e) {
    e.t = caught_up(missed, e.t, e.v);
    e.v *= missed.kept;
  });
  state.optimizer.steps = std::int64_t(scales.size());
}

ClockedStep clocked_step(const Phase& phase, double scale, const StepPart& part) {
  const OptimizerSettings& optimizer = phase.factor_optimizer;
  return {.momentum = float(optimizer.momentum),
          .renormalised = float(part.renormalised),
          .lr = float(optimizer.lr * scale * part.kept)};
}

void settle_on_clock(const ClockedStep& step, const SiteState& before, SiteState& proposed) {
  const Message &t = before.factor, &v = before.optimizer.slots[0];
  const std::span<const float> starts[2] = {t.eta().span(), t.lambda_span()};
  const std::span<const float> momenta[2] = {v.eta().span(), v.lambda_span()};
  for_each_element(proposed, [&](int array, std::size_t i, Element e) {
    e.v = settled_momentum(step, momenta[array][i], e.v);
    e.t = starts[array][i] + step.lr * e.v;
  });
}

}  // namespace fedep
