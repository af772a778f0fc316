#include "fedep/optim/optimizer.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "fedep/message/check.h"
#include "fedep/message/table.h"

namespace fedep {
namespace {

using SlotNames = std::span<const std::string_view>;

constexpr std::array<std::string_view, 1> kMomentum{"momentum"};
constexpr std::array<std::string_view, 1> kAccumulator{"accumulator"};
constexpr std::array<std::string_view, 2> kMoments{"first_moment", "second_moment"};

SlotNames sgd_slots(const OptimizerSettings& s) {
  return s.momentum == 0 ? SlotNames() : SlotNames(kMomentum);
}
SlotNames adagrad_slots(const OptimizerSettings&) { return kAccumulator; }
SlotNames moment_slots(const OptimizerSettings&) { return kMoments; }

float zero_value(const OptimizerSettings&, std::size_t) { return 0; }
float adagrad_value(const OptimizerSettings& s, std::size_t) {
  return float(s.initial_accumulator);
}
float yogi_value(const OptimizerSettings& s, std::size_t slot) {
  return slot == 1 ? float(s.initial_accumulator) : 0;
}

OptimizerStep plain_step(OptimizerStep::Kind kind, const OptimizerSettings& s, double scale) {
  return {.kind = kind,
          .lr = float(s.lr * scale),
          .momentum_factor = float(s.momentum),
          .beta1 = float(s.beta1),
          .beta2 = float(s.beta2),
          .epsilon = float(s.epsilon)};
}
OptimizerStep sgd_step(const OptimizerSettings& s, std::int64_t, double scale) {
  return plain_step(s.momentum == 0 ? OptimizerStep::sgd : OptimizerStep::momentum, s, scale);
}
OptimizerStep adagrad_step(const OptimizerSettings& s, std::int64_t, double scale) {
  return plain_step(s.epsilon_inside_root ? OptimizerStep::adagrad_inside : OptimizerStep::adagrad,
                    s, scale);
}
OptimizerStep adam_step(const OptimizerSettings& s, std::int64_t step, double scale) {
  OptimizerStep out = plain_step(OptimizerStep::adam, s, scale);
  out.lr = float(s.lr * scale / (1 - std::pow(s.beta1, double(step))));
  out.correct = float(1 / (1 - std::pow(s.beta2, double(step))));
  return out;
}
OptimizerStep yogi_step(const OptimizerSettings& s, std::int64_t, double scale) {
  return plain_step(OptimizerStep::yogi, s, scale);
}

// A loop for each number of slots, and a step of its own that no array can be part of, so that the
// compiler makes several coordinates at a time.
template <OptimizerStep::Kind kKind>
void apply_to_all(OptimizerStep step, std::span<float> x, std::span<const float> g,
                  std::span<const std::span<float>> slots) {
  float none = 0;
  if (slots.empty()) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = stepped<kKind>(step, x[i], g[i], none, none);
  } else if (slots.size() == 1) {
    const std::span<float> a = slots[0];
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = stepped<kKind>(step, x[i], g[i], a[i], none);
  } else {
    const std::span<float> a = slots[0], b = slots[1];
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = stepped<kKind>(step, x[i], g[i], a[i], b[i]);
  }
}

constexpr std::array kOptimizers{
    Optimizer{"sgd", "gradient steps, with momentum if asked", sgd_slots, zero_value, sgd_step},
    Optimizer{"adagrad", "steps shrink with the root of summed squares", adagrad_slots,
              adagrad_value, adagrad_step},
    Optimizer{"adam", "bias-corrected moving moments", moment_slots, zero_value, adam_step},
    Optimizer{"yogi", "second moment that follows slowly, as in FedYogi", moment_slots, yogi_value,
              yogi_step},
};

Message constant_message(const Message& like, float value) {
  Message out = flat_like(like.eta(), like.family());
  std::ranges::fill(out.eta().span(), value);
  std::ranges::fill(out.lambda_span(), value);
  return out;
}

}  // namespace

std::span<const Optimizer> optimizers() { return kOptimizers; }

const Optimizer& find_optimizer(std::string_view name) {
  return find_row("optimizer", kOptimizers, name);
}

void check_optimizer(const OptimizerSettings& s) {
  find_optimizer(s.name);
  check_positive(s.name, "lr", s.lr);
  check_in(s.name, "momentum", s.momentum, 0, std::nextafter(1.0, 0.0));
  check_in(s.name, "beta1", s.beta1, 0, std::nextafter(1.0, 0.0));
  check_in(s.name, "beta2", s.beta2, 0, std::nextafter(1.0, 0.0));
  check_not_negative(s.name, "epsilon", s.epsilon);
  check_not_negative(s.name, "initial_accumulator", s.initial_accumulator);
}

void apply_step(const OptimizerStep& step, std::span<float> x, std::span<const float> g,
                std::span<const std::span<float>> slots) {
  switch (step.kind) {
    case OptimizerStep::sgd:
      return apply_to_all<OptimizerStep::sgd>(step, x, g, slots);
    case OptimizerStep::momentum:
      return apply_to_all<OptimizerStep::momentum>(step, x, g, slots);
    case OptimizerStep::adagrad:
      return apply_to_all<OptimizerStep::adagrad>(step, x, g, slots);
    case OptimizerStep::adagrad_inside:
      return apply_to_all<OptimizerStep::adagrad_inside>(step, x, g, slots);
    case OptimizerStep::adam:
      return apply_to_all<OptimizerStep::adam>(step, x, g, slots);
    case OptimizerStep::yogi:
      return apply_to_all<OptimizerStep::yogi>(step, x, g, slots);
  }
}

OptimizerState initial_state(const OptimizerSettings& settings, const Message& like) {
  check_optimizer(settings);
  const Optimizer& optimizer = find_optimizer(settings.name);
  OptimizerState state;
  const std::size_t slots = optimizer.slots(settings).size();
  for (std::size_t i = 0; i < slots; ++i) {
    state.slots.push_back(constant_message(like, optimizer.initial_value(settings, i)));
  }
  return state;
}

void advance(const OptimizerSettings& settings, OptimizerState& state, Message& x,
             const Message& delta, double scale) {
  check_same_size("advance", "delta", x.size(), delta.size());
  if (x.family() != delta.family()) fail("advance", "delta", "of x's family", "of the other");
  const Optimizer& optimizer = find_optimizer(settings.name);
  check_same_size("advance", "optimizer state", optimizer.slots(settings).size(),
                  state.slots.size());
  ++state.steps;
  std::vector<std::span<float>> eta_slots, lambda_slots;
  for (Message& slot : state.slots) {
    eta_slots.push_back(slot.eta().span());
    lambda_slots.push_back(slot.lambda_span());
  }
  const OptimizerStep step = optimizer.step(settings, state.steps, scale);
  apply_step(step, x.eta().span(), delta.eta().span(), eta_slots);
  apply_step(step, x.lambda_span(), delta.lambda_span(), lambda_slots);
}

}  // namespace fedep
