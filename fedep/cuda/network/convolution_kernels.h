// Convolutions and linear layers of a whole cohort on the GPU, as matrix products whose operands
// are gathered on the way into shared memory: no im2col, live taps only. A linear layer is a 1x1
// convolution of 1x1 maps. Images are [clients, rows, height, width, channels], weights of client c
// [taps, in, out] at weights + (c / cohort.sharing) stride.
//
//   const Geometry g = geometry_of(shape);  // cohort_network.h
//   convolve(g, cohort, {.x = y1, .weights = w, .stride = p, .y = y2}, precise, stream);
//
// Plain C++17 without other headers of the project: compiled by nvcc and by the host's compiler.
#pragma once

#include <cstddef>
#include <cstdint>

struct CUstream_st;

namespace fedep::gpu {

using Stream = CUstream_st*;

// n / d without a division, for n < 2^31.
struct Divisor {
  std::uint32_t divisor = 1, factor = 0, shift = 0;
};
Divisor make_divisor(std::uint32_t d);

constexpr int kMostTaps = 49;
constexpr int kMostPositions = 1024;  // of an output map

struct Geometry {
  int height = 1, width = 1, in = 1;
  int out_height = 1, out_width = 1, out = 1;
  int kernel = 1, stride = 1, pad_top = 0, pad_left = 0;
  int taps = 1;                      // that meet data somewhere: live ones
  int weight_rows = 1;               // taps × in, less what inputs were filled up with
  std::uint8_t tap[kMostTaps] = {};  // their places in the kernel, row by row
  Divisor by_in, by_out, by_input_positions, by_output_positions;

  int input_positions() const { return height * width; }
  int output_positions() const { return out_height * out_width; }
};

// Strides 1 and 2, kernels up to 7x7, maps up to kMostPositions.
Geometry make_geometry(int height, int width, int in, int out_height, int out_width, int out,
                       int kernel, int stride, int pad_top, int pad_left);
Geometry make_dense(int in, int out);
// The same convolution on neighbourhoods that were copied out into rows (copy_out_patches() in
// layer_kernels.h), filled up to a multiple of four: faster where the input has few channels and no
// gradient is wanted of it.
Geometry make_patches(const Geometry& g);

// The clients of a step: counts[c] examples of client c are in use, of `rows` there is room for.
struct CohortShape {
  int clients = 1, rows = 1;
  const std::int32_t* counts = nullptr;
  int sharing = 1;  // so many neighbours have the same weights: client c's are row c / sharing
  // Sums are cut as if there were so many clients, so that a client's numbers do not depend on how
  // many others take part. 0: there are always as many.
  int planned = 0;

  int most_clients() const { return planned > 0 ? planned : clients; }
};

struct Forward {
  const float* x = nullptr;
  bool x_is_tf32 = false;  // its numbers need no rounding for a TF32 product
  const float* weights = nullptr;
  std::size_t stride = 0;
  const float* bias = nullptr;  // [out] with the weights' stride; may be null
  const float* add = nullptr;   // shaped like y, added to it; may be null
  bool rectify_y = false;
  bool round_y = false;  // to TF32, unless products are precise
  float* y = nullptr;
};
void convolve(const Geometry& g, const CohortShape& cohort, const Forward& f, bool precise,
              Stream stream);

struct InputGradient {
  const float* dy = nullptr;
  const float* weights = nullptr;
  std::size_t stride = 0;
  const float* where_positive =
      nullptr;      // shaped like dx: gradient passes where this is > 0; may be null
  float scale = 1;  // of dx
  float* dx = nullptr;
};
void input_gradient(const Geometry& g, const CohortShape& cohort, const InputGradient& f,
                    bool precise, Stream stream);

// What becomes of a weight's gradient g: m = mu m + g + (lambda theta - eta) per_example, theta -=
// lr m.
struct Update {
  float* theta = nullptr;  // of the layer's tensor, as all pointers here
  float* momentum = nullptr;
  const float* eta = nullptr;     // may be null: zero
  const float* lambda = nullptr;  // per weight if `diagonal`, else [clients]
  bool diagonal = false;
  std::size_t stride = 0;              // between clients
  const float* per_example = nullptr;  // [clients]
  float lr = 0, mu = 0;
  const float* rate = nullptr;  // [clients], in place of lr where it changes from step to step
};

struct WeightGradient {
  const float* x = nullptr;
  bool x_is_tf32 = false;
  const float* dy = nullptr;
  float* partial =
      nullptr;  // room for splits × clients × weights, where splits are more than one; null: none
};
// How many parts the sum over positions and examples is cut into, so that the GPU is full: at most
// kMostSplits, and none more for more clients.
constexpr int kMostSplits = 8;
int gradient_splits(const Geometry& g, int clients);
void update_weights(const Geometry& g, const CohortShape& cohort, const WeightGradient& f,
                    const Update& u, bool precise, Stream stream);
// Where squared gradients are added up. So many neighbouring clients of the cohort are minibatches
// of one: row r of the sum gets those of clients r minibatches + 0, 1, …, all of one size but for
// empty ones at the end.
struct SquaredSum {
  float* sum = nullptr;
  std::size_t stride = 0;
  int minibatches = 1;
};
// sum += Σ_minibatches (1/size) Σ_examples of squared gradients, on live taps.
void add_squares(const Geometry& g, const CohortShape& cohort, const WeightGradient& f,
                 const SquaredSum& to, bool precise, Stream stream);

// The same for a bias: gradient is the sum of dy [clients, rows, positions, out] over examples and
// positions.
void update_bias(int positions, int out, const CohortShape& cohort, const float* dy,
                 const Update& u, Stream stream);
void add_bias_squares(int positions, int out, const CohortShape& cohort, const float* dy,
                      const SquaredSum& to, Stream stream);

}  // namespace fedep::gpu
