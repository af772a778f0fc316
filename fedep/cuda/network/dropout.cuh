// Which units are dropped (model/layer/elementwise.h's fill_dropout): sixteen a block of the client's
// stream, a byte each.
#pragma once

#include "fedep/cuda/device/random.cuh"
#include "fedep/cuda/network/layer_kernels.h"

namespace fedep::gpu {

struct DropoutBytes {
  const StreamAddress* streams;
  std::size_t first, units;
  std::uint32_t dropped;  // bytes below are
  float kept;             // what the others are multiplied by

  explicit DropoutBytes(const Dropout& dropout)
      : streams(dropout.streams),
        first(dropout.first),
        units(dropout.units),
        dropped(std::uint32_t(dropout.rate * 256.0f)),
        kept(1.0f / (1.0f - dropout.rate)) {}

  // The bytes of units 16 chunk .. 16 chunk + 15 at hand.
  __device__ Words block(int client, int row, unsigned chunk) const {
    return philox_block(streams[client], (std::uint64_t(row) * units + first) / 16 + chunk);
  }
  __device__ float factor(std::uint32_t word, int byte) const {
    return ((word >> (8 * byte)) & 0xFFu) < dropped ? 0.0f : kept;
  }
};

}  // namespace fedep::gpu
