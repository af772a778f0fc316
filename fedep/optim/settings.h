// Settings of optimizers and of the positivity guard, as a recipe gives them.
#pragma once

#include <string>

namespace fedep {

// An optimizer on natural parameters; which fields matter depends on the name (see registry.h).
struct OptimizerSettings {
  std::string name = "sgd";
  double lr = 1.0;
  double momentum = 0.0;             // sgd
  double beta1 = 0.9;                // adam, yogi
  double beta2 = 0.99;               // adam, yogi
  double epsilon = 1e-5;             // adagrad, adam, yogi
  bool epsilon_inside_root = false;  // adagrad: g/√(a+ε) as the reference, or g/(√a+ε) as Keras
  double initial_accumulator = 0.0;  // adagrad, yogi: second-moment slot before the first step

  bool operator==(const OptimizerSettings&) const = default;
};

// What happens when a cavity or a new global precision is not positive.
enum class GuardMode {
  count,     // nothing, but it is counted (the reference has no check at all)
  back_off,  // shrink the step (server) or the factor taken out (cavity) until all is positive
  floor,     // raise every precision below the floor to it, means kept where they exist
  skip,      // leave the client, or the whole step, out of this round
};

struct GuardSettings {
  GuardMode mode = GuardMode::count;
  double floor = 1e-6;  // smallest precision that mode `floor` leaves

  bool operator==(const GuardSettings&) const = default;
};

}  // namespace fedep
