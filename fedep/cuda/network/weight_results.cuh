// What becomes of the sums of weight_product.cuh: a part among several, squares, or the SGD step.
#pragma once

#include "fedep/cuda/network/tensor_core.cuh"
#include "fedep/cuda/network/weight_step.cuh"

namespace fedep::gpu {

// A thread's weights of a block's [kM, kN] tile: kItems fours (or single weights), all in its own
// columns.
template <int kM_, int kN_, int kThreads, int kPart_>
struct OwnWeights {
  static constexpr int kM = kM_, kN = kN_, kPart = kPart_;
  static constexpr int kAcross = kN / kPart;
  static constexpr int kItems = kM * kAcross / kThreads, kStep = kThreads / kAcross;
  const Geometry& g;
  int first_m, first_n;  // where the tile begins
  bool one_tap;          // in the tile
  int tap;               // that one

  __device__ int column() const { return int(threadIdx.x) % kAcross * kPart; }
  __device__ int row(int item) const { return int(threadIdx.x) / kAcross + item * kStep; }
  __device__ bool has_columns() const { return first_n + column() < g.out; }
  __device__ bool has(int item) const { return first_m + row(item) < g.weight_rows; }
  // Where they are among a client's.
  __device__ int at(int item) const {
    const int m = first_m + row(item);
    const int own_tap = one_tap ? tap : divide(g.by_in, m);
    return (int(g.tap[own_tap]) * g.in + m - own_tap * g.in) * g.out + first_n + column();
  }
};

// What the step needs besides the gradient, in shared memory: [kM, kN] each, as those that are
// there.
template <int kSize>
struct StepTiles {
  float *theta, *momentum, *eta, *lambda;

  __device__ StepTiles(const Update& u, float* begin) {
    theta = begin;
    momentum = theta + kSize;
    eta = momentum + (u.mu != 0 ? kSize : 0);
    lambda = eta + (u.eta != nullptr ? kSize : 0);
  }

  template <class Own>
  __device__ void fetch(const Own& own, const Update& u, int client) const {
    const int place = own.row(0) * Own::kN + own.column();
    const unsigned to_theta = shared_address(theta + place),
                   to_momentum = shared_address(momentum + place),
                   to_eta = shared_address(eta + place), to_lambda = shared_address(lambda + place);
#pragma unroll
    for (int item = 0; item < Own::kItems; ++item) {
      const bool valid = own.has_columns() && own.has(item);
      const std::size_t i = std::size_t(client) * u.stride + std::size_t(valid ? own.at(item) : 0);
      const unsigned next = unsigned(item * Own::kStep * Own::kN) * 4;
      copy<Own::kPart>(to_theta + next, u.theta + i, valid);
      if (u.mu != 0) copy<Own::kPart>(to_momentum + next, u.momentum + i, valid);
      if (u.eta != nullptr) copy<Own::kPart>(to_eta + next, u.eta + i, valid);
      if (u.diagonal) copy<Own::kPart>(to_lambda + next, u.lambda + i, valid);
    }
  }

  // sums [kM, kStride]
  template <int kStride, class Own>
  __device__ void step_all(const Own& own, const Update& u, int client, const float* sums) const {
    constexpr int kPart = Own::kPart;
    const float per_example = u.per_example[client],
                shared_lambda = u.diagonal ? 0.0f : u.lambda[client], rate = rate_of(u, client);
#pragma unroll
    for (int item = 0; item < Own::kItems; ++item) {
      if (!own.has(item)) break;
      const int place = own.row(item) * Own::kN + own.column();
      float own_theta[kPart], own_momentum[kPart] = {}, own_eta[kPart] = {}, own_lambda[kPart],
                              gradient[kPart];
      load_part<kPart>(sums + own.row(item) * kStride + own.column(), gradient);
      load_part<kPart>(theta + place, own_theta);
      if (u.mu != 0) load_part<kPart>(momentum + place, own_momentum);
      if (u.eta != nullptr) load_part<kPart>(eta + place, own_eta);
      if (u.diagonal) load_part<kPart>(lambda + place, own_lambda);
#pragma unroll
      for (int j = 0; j < kPart; ++j) {
        step(u, rate, u.diagonal ? own_lambda[j] : shared_lambda, per_example, own_eta[j],
             gradient[j], own_momentum[j], own_theta[j]);
      }
      const std::size_t i = std::size_t(client) * u.stride + std::size_t(own.at(item));
      store_part<kPart>(own_theta, u.theta + i);
      if (u.mu != 0) store_part<kPart>(own_momentum, u.momentum + i);
    }
  }
};

// The others: sums are [kM, kStride].
template <int kStride, class Own>
__device__ void keep_part(const Own& own, const WeightTask& task, int client, int split,
                          const float* sums) {
  const std::size_t part = std::size_t(split) * std::size_t(task.rows()) + std::size_t(client);
  for (int item = 0; item < Own::kItems; ++item) {
    if (!own.has(item)) break;
    const std::size_t row =
        part * std::size_t(own.g.weight_rows) + std::size_t(own.first_m + own.row(item));
    float* const to =
        task.partial + row * std::size_t(own.g.out) + std::size_t(own.first_n + own.column());
    const float* const sum = sums + own.row(item) * kStride + own.column();
    for (int j = 0; j < Own::kPart; ++j) to[j] = sum[j];
  }
}

template <int kStride, class Own>
__device__ void add_to_squares(const Own& own, const SquaredSum& squares, int client, float weight,
                               const float* sums) {
  constexpr int kPart = Own::kPart;
  for (int item = 0; item < Own::kItems; ++item) {
    if (!own.has(item)) break;
    float* const to =
        squares.sum + std::size_t(client) * squares.stride + std::size_t(own.at(item));
    const float* const sum = sums + own.row(item) * kStride + own.column();
    float total[kPart];
    load_part<kPart>(to, total);
    for (int j = 0; j < kPart; ++j) total[j] += weight * sum[j];
    store_part<kPart>(total, to);
  }
}

template <int kStride, class Own>
__device__ void step_each(const Own& own, const Update& u, int client, const float* sums) {
  for (int item = 0; item < Own::kItems; ++item) {
    if (!own.has(item)) break;
    for (int j = 0; j < Own::kPart; ++j) {
      update_one(u, client, std::size_t(own.at(item) + j),
                 sums[own.row(item) * kStride + own.column() + j]);
    }
  }
}

}  // namespace fedep::gpu
