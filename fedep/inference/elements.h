// What inference methods do with one number: formulas written once for loops over main memory and for
// a GPU's kernels (sample_moments.h and ngvi.h say them for whole vectors; a test ties the two, bit for
// bit).
//
// Plain C++17: nvcc reads this too. Both compilers must contract nothing to fused multiply-adds.
#pragma once

namespace fedep {

constexpr float clamped(float x, float low, float high) {
  return x < low ? low : (x > high ? high : x);
}

// Mean and sum of squared distances from it of a coordinate's samples so far (Welford). T is float, or
// several of them at once.
template <class T = float>
struct RunningMoments {
  T mean{}, squares{};

  // One more, which weighs 1/n if it is the n-th.
  constexpr void add(float weight, T x) {
    const T gap = x - mean;
    mean += weight * gap;
    squares += gap * (x - mean);
  }
};

// 1 / (r + (1 - r) variance), variance = squares / (n - 1).
constexpr float sample_precision(float squares, float samples_less_one, float one_less_shrinkage,
                                 float shrinkage) {
  return 1.0f / (one_less_shrinkage * (squares / samples_less_one) + shrinkage);
}

// ν ← β ν + (1 - β) F and Λ = N_k ν + Λ_p (Guo+23 Alg. 5).
constexpr float natural_step(float beta, float nu, float one_less_beta, float fisher) {
  return beta * nu + one_less_beta * fisher;
}
constexpr float natural_precision(float examples, float nu, float prior) {
  return examples * nu + prior;
}

}  // namespace fedep
