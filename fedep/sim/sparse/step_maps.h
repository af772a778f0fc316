// The maps of free_steps.h for 0, 1, 2, … steps, as a chain looks them up whose λ is one number.
//
//   StepMaps maps(numbers, lambda);
//   maps.reach(100);
//   maps.without_gradient()[40]     // 40 steps without one
//   maps.after_gradient()[40]       // a step down a gradient, and 40 without one
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "fedep/sim/chain/free_steps.h"

namespace fedep {

// A FreeMap in single precision.
struct RowMap {
  explicit RowMap(const FreeMap& map);
  float by_r, by_m, m_by_r, m_by_m, sum_by_r, sum_by_m;
};

class StepMaps {
 public:
  // Has the maps of no step.
  StepMaps(const SgdNumbers& numbers, float lambda);

  // Adds what is missing of the maps of up to so many steps.
  void reach(std::size_t steps);

  std::span<const FreeMap> exact() const { return exact_; }
  std::span<const RowMap> without_gradient() const { return without_gradient_; }
  std::span<const GradientMap> after_gradient() const { return after_gradient_; }

 private:
  SgdNumbers numbers_;
  double lambda_;
  std::vector<FreeMap> exact_{FreeMap{}};
  std::vector<RowMap> without_gradient_{RowMap(FreeMap{})};
  std::vector<GradientMap> after_gradient_;
};

}  // namespace fedep
