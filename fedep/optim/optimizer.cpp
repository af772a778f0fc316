#include "fedep/optim/optimizer.h"

#include <array>
#include <cmath>

#include "fedep/message/check.h"
#include "fedep/message/nearest.h"

namespace fedep {
namespace {

using Slots = std::span<const std::span<float>>;
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

void sgd(const OptimizerSettings& s, std::int64_t, std::span<float> x, std::span<const float> g,
         Slots slots, double scale) {
  const float lr = float(s.lr * scale);
  if (slots.empty()) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += lr * g[i];
    return;
  }
  const float momentum = float(s.momentum);
  const std::span<float> m = slots[0];
  for (std::size_t i = 0; i < x.size(); ++i) {
    m[i] = g[i] + momentum * m[i];
    x[i] += lr * m[i];
  }
}

void adagrad(const OptimizerSettings& s, std::int64_t, std::span<float> x, std::span<const float> g,
             Slots slots, double scale) {
  const float lr = float(s.lr * scale);
  const float epsilon = float(s.epsilon);
  const std::span<float> a = slots[0];
  if (s.epsilon_inside_root) {
    for (std::size_t i = 0; i < x.size(); ++i) {
      a[i] += g[i] * g[i];
      x[i] += a[i] > 0 ? lr * g[i] / std::sqrt(a[i] + epsilon) : 0.0f;
    }
    return;
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    a[i] += g[i] * g[i];
    x[i] += a[i] > 0 ? lr * g[i] / (std::sqrt(a[i]) + epsilon) : 0.0f;
  }
}

void adam(const OptimizerSettings& s, std::int64_t step, std::span<float> x,
          std::span<const float> g, Slots slots, double scale) {
  const float b1 = float(s.beta1), b2 = float(s.beta2), epsilon = float(s.epsilon);
  const float lr = float(s.lr * scale / (1 - std::pow(s.beta1, double(step))));
  const float correct = float(1 / (1 - std::pow(s.beta2, double(step))));
  const std::span<float> m = slots[0], v = slots[1];
  for (std::size_t i = 0; i < x.size(); ++i) {
    m[i] = b1 * m[i] + (1 - b1) * g[i];
    v[i] = b2 * v[i] + (1 - b2) * g[i] * g[i];
    x[i] += lr * m[i] / (std::sqrt(correct * v[i]) + epsilon);
  }
}

void yogi(const OptimizerSettings& s, std::int64_t, std::span<float> x, std::span<const float> g,
          Slots slots, double scale) {
  const float b1 = float(s.beta1), b2 = float(s.beta2), epsilon = float(s.epsilon);
  const float lr = float(s.lr * scale);
  const std::span<float> m = slots[0], v = slots[1];
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float g2 = g[i] * g[i];
    const float sign = v[i] > g2 ? 1.0f : (v[i] < g2 ? -1.0f : 0.0f);
    m[i] = b1 * m[i] + (1 - b1) * g[i];
    v[i] -= (1 - b2) * sign * g2;
    x[i] += lr * m[i] / (std::sqrt(v[i]) + epsilon);
  }
}

constexpr std::array kOptimizers{
    Optimizer{"sgd", "gradient steps, with momentum if asked", sgd_slots, zero_value, sgd},
    Optimizer{"adagrad", "steps shrink with the root of summed squares", adagrad_slots,
              adagrad_value, adagrad},
    Optimizer{"adam", "bias-corrected moving moments", moment_slots, zero_value, adam},
    Optimizer{"yogi", "second moment that follows slowly, as in FedYogi", moment_slots, yogi_value,
              yogi},
};

Message constant_message(const Message& like, float value) {
  HostVector<float> eta = constant_like(like.eta(), value);
  if (like.isotropic()) return {std::move(eta), value};
  HostVector<float> lambda = eta;
  return {std::move(eta), std::move(lambda)};
}

}  // namespace

std::span<const Optimizer> optimizers() { return kOptimizers; }

const Optimizer& find_optimizer(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Optimizer& optimizer : kOptimizers) {
    if (optimizer.name == name) return optimizer;
    names.push_back(optimizer.name);
  }
  throw InputError(unknown_name("optimizer", name, names));
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
  optimizer.apply(settings, state.steps, x.eta().span(), delta.eta().span(), eta_slots, scale);
  optimizer.apply(settings, state.steps, x.lambda_span(), delta.lambda_span(), lambda_slots, scale);
}

}  // namespace fedep
