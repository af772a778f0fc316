// An optimizer's step on one number: the formulas of optimizer.h, written once for the loops of
// optimizer.cpp and for a GPU's kernels. What does not depend on the number is worked out beforehand
// (step_of in optimizer.h).
//
// Plain C++17: nvcc reads this too. Both compilers must contract nothing to fused multiply-adds; then
// the bits are the same.
#pragma once

#include <cmath>

namespace fedep {

struct OptimizerStep {
  enum Kind : int { sgd, momentum, adagrad, adagrad_inside, adam, yogi } kind = sgd;
  float lr = 0;
  float momentum_factor = 0;
  float beta1 = 0, beta2 = 0, epsilon = 0;
  float correct = 1;  // adam's 1 / (1 - beta2^t)
};

// Where x goes from `x` by the gradient g; its slots follow.
template <OptimizerStep::Kind kKind>
constexpr float stepped(const OptimizerStep& s, float x, float g, float& slot0, float& slot1) {
  if constexpr (kKind == OptimizerStep::sgd) {
    return x + s.lr * g;
  } else if constexpr (kKind == OptimizerStep::momentum) {
    slot0 = g + s.momentum_factor * slot0;
    return x + s.lr * slot0;
  } else if constexpr (kKind == OptimizerStep::adagrad) {
    slot0 += g * g;
    return x + (slot0 > 0 ? s.lr * g / (std::sqrt(slot0) + s.epsilon) : 0.0f);
  } else if constexpr (kKind == OptimizerStep::adagrad_inside) {
    slot0 += g * g;
    return x + (slot0 > 0 ? s.lr * g / std::sqrt(slot0 + s.epsilon) : 0.0f);
  } else if constexpr (kKind == OptimizerStep::adam) {
    slot0 = s.beta1 * slot0 + (1 - s.beta1) * g;
    slot1 = s.beta2 * slot1 + (1 - s.beta2) * g * g;
    return x + s.lr * slot0 / (std::sqrt(s.correct * slot1) + s.epsilon);
  } else {
    const float g2 = g * g;
    const float sign = slot1 > g2 ? 1.0f : (slot1 < g2 ? -1.0f : 0.0f);
    slot0 = s.beta1 * slot0 + (1 - s.beta1) * g;
    slot1 -= (1 - s.beta2) * sign * g2;
    return x + s.lr * slot0 / (std::sqrt(slot1) + s.epsilon);
  }
}

// The same with the kind looked up at every number, as a GPU can afford.
constexpr float stepped(const OptimizerStep& s, float x, float g, float& slot0, float& slot1) {
  switch (s.kind) {
    case OptimizerStep::sgd:
      return stepped<OptimizerStep::sgd>(s, x, g, slot0, slot1);
    case OptimizerStep::momentum:
      return stepped<OptimizerStep::momentum>(s, x, g, slot0, slot1);
    case OptimizerStep::adagrad:
      return stepped<OptimizerStep::adagrad>(s, x, g, slot0, slot1);
    case OptimizerStep::adagrad_inside:
      return stepped<OptimizerStep::adagrad_inside>(s, x, g, slot0, slot1);
    case OptimizerStep::adam:
      return stepped<OptimizerStep::adam>(s, x, g, slot0, slot1);
    case OptimizerStep::yogi:
      return stepped<OptimizerStep::yogi>(s, x, g, slot0, slot1);
  }
  return x;
}

}  // namespace fedep
