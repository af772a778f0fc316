// Where one tap of a convolution meets data: what a gradient of its weights is summed over.
#pragma once

#include "fedep/cuda/network/convolution_kernels.h"

namespace fedep::gpu {

// In shared memory. kMost: output positions there may be.
template <int kMost>
struct TapPositions {
  short output[kMost];  // positions of the output map
  int input[kMost];     // and of the input they meet there, in floats from an image's beginning
  int count;

  // Fills the lists for tap g.tap[t], with every position if `all`. For the first warp of a block;
  // a barrier must follow.
  __device__ void list(const Geometry& g, int t, bool all) {
    const int lane = int(threadIdx.x), positions = g.out_height * g.out_width;
    const int ky = g.tap[t] / g.kernel, kx = g.tap[t] % g.kernel;
    int found = 0;
    for (int base = 0; base < positions; base += 32) {
      const int p = base + lane;
      const int oy = p / g.out_width, ox = p - oy * g.out_width;
      const int y = oy * g.stride - g.pad_top + ky, x = ox * g.stride - g.pad_left + kx;
      const bool inside =
          p < positions && (all || (y >= 0 && y < g.height && x >= 0 && x < g.width));
      const unsigned vote = __ballot_sync(0xFFFFFFFFu, inside);
      if (inside) {
        const int place = found + __popc(vote & ((1u << lane) - 1u));
        output[place] = short(p);
        input[place] = (y * g.width + x) * g.in;
      }
      found += __popc(vote);
    }
    if (lane == 0) count = found;
  }
};

}  // namespace fedep::gpu
