// What a network has besides convolutions, for a whole cohort: norms, pools, losses, dropout.
// Shapes as in convolution_kernels.h; `n` images are clients × rows of them, whether in use or not.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fedep/cuda/device/stream_address.h"
#include "fedep/cuda/network/convolution_kernels.h"

namespace fedep::gpu {

// Mean 0, variance 1 over half the channels, at each position or over all positions.
struct NormShape {
  int positions = 1, channels = 2;
  bool per_position = true;
};
// `rectified`, if not null, gets max(y, 0), rounded to TF32 if `round`.
void normalise(const NormShape& s, int n, const float* x, float* y, float* rectified, bool round,
               float* inverse_std, Stream stream);
// dx = base + derivative; base may be null or dx itself. `rectified`: dy is the derivative of
// max(y, 0).
void normalise_backward(const NormShape& s, int n, const float* y, const float* inverse_std,
                        bool rectified, const float* dy, const float* base, float* dx,
                        Stream stream);

// Channels in fours.
struct PoolShape {
  int height = 1, width = 1, channels = 1, window = 2, stride = 2, out_height = 1, out_width = 1,
      pad_top = 0, pad_left = 0;
};
// Units that are dropped: [first, first + those at hand) of each example, of `units` it has in all.
struct Dropout {
  const StreamAddress* streams = nullptr;  // [clients]; null: nothing is dropped
  std::size_t first = 0, units = 0;
  float rate = 0;
};

// `source` gets the tap of the window that the largest came from.
void max_pool(const PoolShape& s, int n, const float* x, float* y, std::uint8_t* source,
              Stream stream);
// y = what dropout keeps of max(largest + bias, 0), with one bias per channel of each client.
void max_pool_rectify(const PoolShape& s, const CohortShape& cohort, const float* x,
                      const float* bias, std::size_t stride, const Dropout& dropout, float* y,
                      std::uint8_t* source, Stream stream);
void max_pool_backward(const PoolShape& s, int n, const float* dy, const std::uint8_t* source,
                       float* dx, Stream stream);

// Neighbourhoods of a convolution as rows: [n, output positions, (kernel kernel in, filled up with
// zeros to a multiple of four)].
void copy_out_patches(const Geometry& g, int n, const float* x, float* patches, Stream stream);

// Mean over positions of max(y, 0), and back.
void mean_rectified(int positions, int channels, int n, const float* y, float* mean, Stream stream);
void spread_mean(int positions, int channels, int n, const float* d_mean, float* dy, Stream stream);

// Softmax cross-entropy: logits become the derivative of the loss, of the batch's mean or sum, or each
// example's own; loss[c] += mean loss, if not null. Rows beyond counts[c] get derivative 0.
enum class DeltaScale { batch_mean, batch_sum, per_example };
void softmax_delta(int outputs, const CohortShape& cohort, const std::int32_t* labels,
                   DeltaScale scale, float* logits, double* loss, Stream stream);

// One draw per example from softmax of its logits; uniform i of the client's stream belongs to
// example i.
void draw_labels(int outputs, const CohortShape& cohort, const StreamAddress* streams,
                 const float* logits, std::int32_t* labels, Stream stream);

// What is kept of `per_example` values of each example.
void drop_out(int per_example, const CohortShape& cohort, const Dropout& dropout, float* values,
              Stream stream);

}  // namespace fedep::gpu
