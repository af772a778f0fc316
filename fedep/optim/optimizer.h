// Optimizers on natural parameters: a delta is treated as a gradient to be followed (Guo+23 Sec.
// 2.2.3), coordinate by coordinate, eta and lambda alike. Used by the server on q and by a client
// on its own factor.
//
//   OptimizerState state = initial_state(settings, global);
//   advance(settings, state, global, delta);        // global moves, state moves
//
//   sgd       m ← g + momentum·m                      x ← x + lr·m
//   adagrad   a ← a + g²                              x ← x + lr·g/√(a+ε)  or  lr·g/(√a+ε)
//   adam      m, v ← moving means of g, g²            x ← x + lr·m̂/(√v̂+ε),  bias-corrected   (Kingma & Ba 2015)
//   yogi      v ← v - (1-β2)·sign(v-g²)·g²            x ← x + lr·m/(√v+ε),   not corrected    (Reddi+21, FedYogi)
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "fedep/message/gaussian.h"
#include "fedep/optim/optimizer_step.h"
#include "fedep/optim/settings.h"

namespace fedep {

template <Storage V>
struct OptimizerStateOf {
  std::int64_t steps = 0;
  std::vector<Gaussian<V>> slots;  // momentum, accumulators: shaped like what is optimized

  bool operator==(const OptimizerStateOf&) const = default;
};
using OptimizerState = OptimizerStateOf<HostVector<float>>;

struct Optimizer {
  std::string_view name;
  std::string_view summary;
  // Slot names, as checkpoints spell them. SGD without momentum has none.
  std::span<const std::string_view> (*slots)(const OptimizerSettings&);
  float (*initial_value)(const OptimizerSettings&, std::size_t slot);
  // Its step number `step`, which counts from 1, times `scale`.
  OptimizerStep (*step)(const OptimizerSettings&, std::int64_t step, double scale);
};

std::span<const Optimizer> optimizers();
const Optimizer& find_optimizer(std::string_view name);

// Throws InputError for a setting out of range (lr <= 0, momentum outside [0, 1), …).
void check_optimizer(const OptimizerSettings& settings);

// One array's step: x and its slots follow g.
void apply_step(const OptimizerStep& step, std::span<float> x, std::span<const float> g,
                std::span<const std::span<float>> slots);

OptimizerState initial_state(const OptimizerSettings& settings, const Message& like);

// Moves `x` by scale·step(delta), and `state` with it. x and delta must be of one family and size.
void advance(const OptimizerSettings& settings, OptimizerState& state, Message& x,
             const Message& delta, double scale = 1.0);

}  // namespace fedep
