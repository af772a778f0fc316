// The arithmetic of a cohort's chains besides the network's: what sim/chain/sgd_update does on a core,
// for all clients at once, with its bits (compiled without contraction) but for coast(), whose
// steps are linear maps. Coordinates come as chunks, so that a kernel runs over those that data
// move, those that they never do, or all. Plain C++17: nvcc reads this.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fedep/cuda/device/stream_address.h"

struct CUstream_st;

namespace fedep::gpu {

using Stream = CUstream_st*;

constexpr std::uint32_t kChunk = 4096;  // coordinates a block takes at most

// Some of a row's coordinates: chunk i is [begin, begin + size). Device memory.
struct Chunk {
  std::uint32_t begin = 0, size = 0;
};
struct Chunks {
  const Chunk* chunks = nullptr;
  int count = 0;
};

// Rows of all chains, [clients, stride]. Device memory.
struct ChainRows {
  int clients = 0;
  std::size_t stride = 0;
  float* theta = nullptr;
  float* momentum = nullptr;
  const float* eta = nullptr;     // null: zero
  const float* lambda = nullptr;  // [clients, stride] if diagonal, else [clients]
  bool diagonal = false;
  const float* per_example = nullptr;  // [clients]
  float lr = 0, mu = 0;
  // Where the rate changes from step to step: that of the present step, in place of lr.
  const float* rate = nullptr;  // [clients]; null: lr
  float* sum = nullptr;         // of an epoch's iterates; null: not kept
  float* mean = nullptr;        // of samples
  float* squares = nullptr;     // about it; null: not kept
};

// How rows of `size` coordinates begin, momentum = 0 besides. Device memory; vectors and rows begin
// at multiples of 16 bytes.
struct ChainStart {
  std::size_t size = 0;
  const float* theta = nullptr;          // of all rows
  const float* const* eta = nullptr;     // [clients] of vectors; null: rows have none
  const float* const* lambda = nullptr;  // [clients] of vectors; null: rows have none
  const float* added = nullptr;          // [clients], to every lambda
  float* eta_rows = nullptr;             // ChainRows::eta and lambda, to be written
  float* lambda_rows = nullptr;
};
void start_chains(const ChainRows& rows, const ChainStart& start, Stream stream);

// Rates of all steps, where they change from one to the next. Device memory.
struct RateTable {
  const float* rates = nullptr;  // [epochs, epoch_length, clients]; null: the rows' lr
  int epoch_length = 0, clients = 0;
  int first_epoch = 0;  // that coast() makes
};
// rate[c] = rates[*step, c].
void take_rates(const float* rates, int clients, const std::int32_t* step, float* rate,
                Stream stream);

// Epochs that no gradient moves: each `steps`[c] steps m ← μ m + (λ θ - η)/N, θ ← θ - lr m, then,
// if `first_sample` > 0, a sample (last iterate, or the average where sums are kept): the first of
// them is the first_sample-th.
void coast(const ChainRows& rows, const Chunks& chunks, int epochs, const std::int32_t* steps,
           int first_sample, Stream stream, const RateTable& rates = {});

// Samples that wait to be added to rows' moments together, which takes fewer passes over these:
// [kMostKept, clients, kept_stride(chunks)]. Device memory.
constexpr int kMostKept = 4;
inline std::size_t kept_stride(const Chunks& chunks) { return std::size_t(chunks.count) * kChunk; }

// The rows' present sample becomes the one kept at `place`.
void keep_sample(const ChainRows& rows, const Chunks& chunks, const std::int32_t* steps,
                 float* kept, int place, Stream stream);

// Into the rows' moments, first `count` kept samples, then, if `with_present`, the rows' present
// one: the first of them is the n-th.
void add_samples(const ChainRows& rows, const Chunks& chunks, const std::int32_t* steps,
                 const float* kept, int count, bool with_present, int n, Stream stream);

// What follows a step where every coordinate must be up to date at every step. Rows with count[c] =
// 0 rest.
void step_without_data(const ChainRows& rows, const Chunks& chunks, const std::int32_t* count,
                       Stream stream);
// m += σ ξ, θ -= lr σ ξ, where σ is that of `lr` and belongs to the rate as 1/√; ξ from keys[c] at the step that `at`[c] names. All `size` coordinates.
void add_langevin(const ChainRows& rows, std::size_t size, const std::int32_t* count,
                  const StreamAddress* keys, const StreamAddress* at, const float* sigma,
                  Stream stream);
void add_to_sum(const ChainRows& rows, const Chunks& chunks, const std::int32_t* count,
                Stream stream);

}  // namespace fedep::gpu
