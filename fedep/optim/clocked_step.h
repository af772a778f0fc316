// A factor's momentum on the server's clock: it acts in every round in which the server stepped, also
// while nobody asks the client,
//
//   v ← m v + r d    t ← t + lr s c v    with d = 0 where the client was not asked,
//
// as the server's own does. Of n steps in a row without a d only two numbers are left, which a visit
// applies at once. Formulas of one number, for the loops of a core and for a GPU's kernels.
//
// Plain C++17: nvcc reads this too. Both compilers must contract nothing to fused multiply-adds; then
// the bits are the same.
#pragma once

namespace fedep {

// Steps of the server since a factor was last moved: t += moved v, v *= kept.
struct MissedSteps {
  float moved = 0;
  float kept = 1;
};

constexpr float caught_up(const MissedSteps& missed, float t, float v) {
  return t + missed.moved * v;
}

// One step of a factor that has caught up, with d.
struct ClockedStep {
  float momentum = 0;
  float renormalised = 1;  // r
  float lr = 0;            // lr s c
};

// What v becomes; `proposed` is m v + d.
constexpr float settled_momentum(const ClockedStep& step, float v, float proposed) {
  const float kept = step.momentum * v;
  return step.renormalised == 1 ? proposed : kept + step.renormalised * (proposed - kept);
}

// Where t goes, all in one; v follows.
constexpr float clocked(const MissedSteps& missed, const ClockedStep& step, float t, float d,
                        float& v) {
  const float before = missed.kept * v;
  const float start = caught_up(missed, t, v);
  v = settled_momentum(step, before, d + step.momentum * before);
  return start + step.lr * v;
}

}  // namespace fedep
