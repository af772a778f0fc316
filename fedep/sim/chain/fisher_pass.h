// The pass over a client's data that collects squared gradients for Laplace and NGVI: which batches
// it has, and where its random numbers are. The same on every device.
#pragma once

#include <algorithm>
#include <cstddef>

#include "fedep/sim/chain/chain.h"

namespace fedep {

// Steps of the pass are addressed above those of any chain.
inline constexpr std::size_t kFisherSteps = std::size_t(1) << 24;
inline constexpr std::size_t kMostDraws = 256;  // in a batch

inline std::size_t fisher_step(int t, int draw) {
  return kFisherSteps + std::size_t(t) * kMostDraws + std::size_t(draw);
}

// floor(epochs N_k / B') batches of B' = min(B, N_k): the reference's pass over pooled data.
// `shuffle` is the address of step kFisherSteps.
inline Minibatches fisher_minibatches(const Address& shuffle, std::size_t examples, int epochs,
                                      std::size_t batch) {
  return Minibatches(shuffle, examples, std::size_t(epochs),
                     std::max<std::size_t>(std::min(batch, examples), 1), Remainder::drop);
}

}  // namespace fedep
