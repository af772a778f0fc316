// Predictions of labels and what scores are made of, example by example, in double:
// metric/probability and metric/classification on the GPU. Plain C++17: nvcc reads this.
#pragma once

#include <cstddef>
#include <cstdint>

struct CUstream_st;

namespace fedep::gpu {

using Stream = CUstream_st*;

// sum[i] (+)= softmax of row i; `first`: what sum held before does not count. Rows are [n,
// classes].
void add_softmax(std::size_t n, int classes, const float* logits, bool first, double* sum,
                 Stream stream);

// What an example adds to the scores.
struct ExampleScore {
  double confidence;  // of the first of the most probable classes; NaN if a probability is
  double nll;         // -log p(label), p at least 2^-52; NaN likewise
  double brier;       // Σ_c (p_c - [c = label])²
  std::int32_t correct;
  std::int32_t unused;
};
// From probabilities sum / draws.
void score_examples(std::size_t n, int classes, const double* sum, double draws,
                    const std::int32_t* labels, ExampleScore* scores, Stream stream);

}  // namespace fedep::gpu
