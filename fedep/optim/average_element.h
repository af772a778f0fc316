// A weighted average of one number over rounds, and its variance about that: with weights w_t that
// add up to 1 after every round, and `gain` the weight of the newest,
//
//   mean ← mean + gain (x - mean),   variance ← (1 - gain)(variance + gain (x - mean before)²)
//
// gives Σ w_t x_t and Σ w_t (x_t - mean)². Where the first gain is 1, what was there before does
// not count.
//
// Plain C++17: nvcc reads this too. Both compilers must contract nothing to fused multiply-adds; then
// the bits are the same.
#pragma once

namespace fedep {

constexpr float averaged(float gain, float x, float mean) { return mean + gain * (x - mean); }

constexpr float averaged_variance(float gain, float x, float mean_before, float variance) {
  constexpr float kLargest = 3.4e38f;  // checkpoints hold finite numbers, of runs that diverged too
  const float gap = x - mean_before;
  const float next = (1 - gain) * (variance + gain * gap * gap);
  return next < kLargest ? next : kLargest;
}

}  // namespace fedep
