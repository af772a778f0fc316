// The arithmetic around squared gradients for a whole cohort: addresses of a draw, draws of
// weights, and one step of NGVI's precision (inference/ngvi.h). Compiled without contraction, so
// that draws have the CPU's bits. Plain C++17: nvcc reads this.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fedep/cuda/device/stream_address.h"
#include "fedep/cuda/round/chain_kernels.h"

namespace fedep::gpu {

// Streams of a draw, [rows] each. Device memory.
struct DrawStreams {
  int rows = 0;
  int at_once = 1;  // draws of a batch, in neighbouring rows: row r has draw *draw + r % at_once
  std::int32_t* draw = nullptr;            // [1]: which draw of the batch comes next
  const StreamAddress* at = nullptr;       // whose step is that of draw 0
  StreamAddress* dropout = nullptr;        // of the pass that draws labels: step + 2 draw
  StreamAddress* dropout_again = nullptr;  // of the one that differentiates: step + 2 draw + 1
  StreamAddress* labels = nullptr;         // step + draw
  StreamAddress* weights = nullptr;        // step + draw
};
// Sets the steps of draws from `*draw` on and moves it on; after `draws` of them it is 0 again.
void begin_draw(const DrawStreams& streams, int draws, Stream stream);

// Standard normals of the address, as fill_normal() gives them.
void fill_normals(const StreamAddress& address, std::size_t size, float* out, Stream stream);

// theta = mean + ξ / sqrt(lambda) for groups of four coordinates; chunks count such groups. Row r of
// theta is a draw of client r / at_once. Rows with count[r] = 0 rest. Strides are multiples of 4.
struct WeightDraws {
  int rows = 0, at_once = 1;
  std::size_t stride = 0;
  const std::int32_t* count = nullptr;     // [rows]
  const StreamAddress* streams = nullptr;  // [rows]
  const float* mean = nullptr;             // [rows / at_once, stride], as lambda
  const float* lambda = nullptr;
  float* theta = nullptr;  // [rows, stride]
};
void draw_weights(const WeightDraws& draws, const Chunks& quads, Stream stream);

// State of NGVI, rows [clients, stride], valid on the chunks; all other coordinates of a row have
// one ν in common.
struct NaturalGradient {
  int clients = 0;
  std::size_t stride = 0, size = 0;  // size: all coordinates of a row
  const float* examples = nullptr;   // [clients], N_k
  const float* prior = nullptr;      // Λ_p: [clients, stride] if diagonal, else [clients]
  bool diagonal = false;
  float* fisher = nullptr;  // sum over draws of a batch's mean squared gradients
  float* nu = nullptr;
  float* lambda = nullptr;
  float* rest_nu = nullptr;   // [clients]
  double* partial = nullptr;  // [clients, kPartials, 2]
  float* bounds = nullptr;    // [clients, 2]
};
constexpr int kPartials = 128;

// ν = initial, Λ = N ν + Λ_p, F = 0.
void begin_natural_gradient(const NaturalGradient& state, const Chunks& chunks, float initial,
                            Stream stream);
// F ← clip(F / draws), ν ← β ν + (1 - β) F, Λ ← N ν + Λ_p, then F = 0. Clipped to mean ± width std
// over all coordinates of a row; width 0: not. Clients whose first of `count_step` counts is 0
// rest.
void step_natural_gradient(const NaturalGradient& state, const Chunks& chunks,
                           const std::int32_t* count, int count_step, int draws, float beta,
                           float one_minus_beta, double width, Stream stream);
// ν of the coordinates that are in no chunk, written out.
void spread_rest(const NaturalGradient& state, const Chunks& rest, Stream stream);

}  // namespace fedep::gpu
