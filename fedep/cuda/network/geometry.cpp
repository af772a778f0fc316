#include <bit>

#include "fedep/cuda/network/convolution_kernels.h"

namespace fedep::gpu {

// Granlund and Montgomery's way: n/d = (high(n f) + n) >> s with s = ceil(log2 d) and f =
// floor(2^32 (2^s - d)/d) + 1.
Divisor make_divisor(std::uint32_t d) {
  Divisor out;
  out.divisor = d;
  out.shift = std::uint32_t(std::bit_width(d - 1));
  const std::uint64_t gap = (std::uint64_t(1) << out.shift) - d;
  out.factor = std::uint32_t((gap << 32) / d + 1);
  return out;
}

Geometry make_geometry(int height, int width, int in, int out_height, int out_width, int out,
                       int kernel, int stride, int pad_top, int pad_left) {
  Geometry g;
  g.height = height;
  g.width = width;
  g.in = in;
  g.out_height = out_height;
  g.out_width = out_width;
  g.out = out;
  g.kernel = kernel;
  g.stride = stride;
  g.pad_top = pad_top;
  g.pad_left = pad_left;
  // A tap is live if it meets an input at some output, along both axes.
  const auto meets = [stride](int tap, int pad, int outputs, int inputs) {
    for (int o = 0; o < outputs; ++o) {
      const int i = o * stride - pad + tap;
      if (i >= 0 && i < inputs) return true;
    }
    return false;
  };
  g.taps = 0;
  for (int tap = 0; tap < kernel * kernel; ++tap) {
    if (!meets(tap / kernel, pad_top, out_height, height)) continue;
    if (!meets(tap % kernel, pad_left, out_width, width)) continue;
    g.tap[g.taps++] = std::uint8_t(tap);
  }
  g.weight_rows = g.taps * in;
  g.by_in = make_divisor(std::uint32_t(in));
  g.by_out = make_divisor(std::uint32_t(out));
  g.by_input_positions = make_divisor(std::uint32_t(height * width));
  g.by_output_positions = make_divisor(std::uint32_t(out_height * out_width));
  return g;
}

Geometry make_dense(int in, int out) { return make_geometry(1, 1, in, 1, 1, out, 1, 1, 0, 0); }

Geometry make_patches(const Geometry& g) {
  const int rows = g.kernel * g.kernel * g.in;
  Geometry patches = make_geometry(g.out_height, g.out_width, (rows + 3) / 4 * 4, g.out_height,
                                   g.out_width, g.out, 1, 1, 0, 0);
  patches.weight_rows = rows;
  return patches;
}

}  // namespace fedep::gpu
