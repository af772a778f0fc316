#include "fedep/model/layer/winograd.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "fedep/model/blas.h"
#include "fedep/model/layer/convolution.h"
#include "fedep/model/layer/vector_width.h"

namespace fedep {
namespace {

constexpr std::size_t kPlaces = 16;  // of a 4x4 tile
constexpr std::size_t kWidth = 16;   // floats of a vector
// Floats of transformed tiles at a time, so that they stay in a 1 MiB cache.
constexpr std::size_t kFloatsAtOnce = 240 * 1024;

typedef float Vector __attribute__((vector_size(kWidth * sizeof(float))));

void grow(std::vector<float>& buffer, std::size_t size) {
  if (buffer.size() < size) buffer.resize(size);
}

// The 16 positions of a tile: where their channels begin.
using Tile = std::array<const float*, kPlaces>;
using MutableTile = std::array<float*, kPlaces>;

// out[place] = (Bᵀ d B)[place]; places of `out` are `plane` floats apart.
void transform_input(const Tile& tile, std::size_t channels, std::size_t plane, float* out) {
  at_full_width([ =, &tile ]() __attribute__((always_inline)) {
    for (std::size_t c = 0; c < channels; c += kWidth) {
      Vector d[4][4], t[4][4], v[4][4];
      for (std::size_t k = 0; k < kPlaces; ++k)
        std::memcpy(&d[k / 4][k % 4], tile[k] + c, sizeof(Vector));
      for (std::size_t j = 0; j < 4; ++j) {
        t[0][j] = d[0][j] - d[2][j];
        t[1][j] = d[1][j] + d[2][j];
        t[2][j] = d[2][j] - d[1][j];
        t[3][j] = d[1][j] - d[3][j];
      }
      for (std::size_t i = 0; i < 4; ++i) {
        v[i][0] = t[i][0] - t[i][2];
        v[i][1] = t[i][1] + t[i][2];
        v[i][2] = t[i][2] - t[i][1];
        v[i][3] = t[i][1] - t[i][3];
      }
      for (std::size_t k = 0; k < kPlaces; ++k)
        std::memcpy(out + k * plane + c, &v[k / 4][k % 4], sizeof(Vector));
    }
  });
}

// dx += B v Bᵀ, the transpose of transform_input().
void add_input_transposed(const float* in, std::size_t channels, std::size_t plane,
                          const MutableTile& tile) {
  at_full_width([ =, &tile ]() __attribute__((always_inline)) {
    for (std::size_t c = 0; c < channels; c += kWidth) {
      Vector v[4][4], t[4][4], d[4][4];
      for (std::size_t k = 0; k < kPlaces; ++k)
        std::memcpy(&v[k / 4][k % 4], in + k * plane + c, sizeof(Vector));
      for (std::size_t j = 0; j < 4; ++j) {
        t[0][j] = v[0][j];
        t[1][j] = v[1][j] - v[2][j] + v[3][j];
        t[2][j] = v[1][j] + v[2][j] - v[0][j];
        t[3][j] = -v[3][j];
      }
      for (std::size_t i = 0; i < 4; ++i) {
        d[i][0] = t[i][0];
        d[i][1] = t[i][1] - t[i][2] + t[i][3];
        d[i][2] = t[i][1] + t[i][2] - t[i][0];
        d[i][3] = -t[i][3];
      }
      for (std::size_t k = 0; k < kPlaces; ++k) {
        Vector sum;
        std::memcpy(&sum, tile[k] + c, sizeof(Vector));
        sum += d[k / 4][k % 4];
        std::memcpy(tile[k] + c, &sum, sizeof(Vector));
      }
    }
  });
}

// The four outputs Aᵀ m A of a tile; `row` floats from one row of outputs to the next.
void transform_output(const float* in, std::size_t channels, std::size_t plane, std::size_t row,
                      float* y) {
  at_full_width([=]() __attribute__((always_inline)) {
    for (std::size_t c = 0; c < channels; c += kWidth) {
      Vector m[4][4], t[2][4];
      for (std::size_t k = 0; k < kPlaces; ++k)
        std::memcpy(&m[k / 4][k % 4], in + k * plane + c, sizeof(Vector));
      for (std::size_t j = 0; j < 4; ++j) {
        t[0][j] = m[0][j] + m[1][j] + m[2][j];
        t[1][j] = m[1][j] - m[2][j] - m[3][j];
      }
      for (std::size_t i = 0; i < 2; ++i) {
        const Vector left = t[i][0] + t[i][1] + t[i][2], right = t[i][1] - t[i][2] - t[i][3];
        std::memcpy(y + i * row + c, &left, sizeof(Vector));
        std::memcpy(y + i * row + channels + c, &right, sizeof(Vector));
      }
    }
  });
}

// out = A dy Aᵀ, the transpose of transform_output().
void transform_output_gradient(const float* dy, std::size_t channels, std::size_t row,
                               std::size_t plane, float* out) {
  at_full_width([=]() __attribute__((always_inline)) {
    for (std::size_t c = 0; c < channels; c += kWidth) {
      Vector d[2][2], t[4][2], m[4][4];
      for (std::size_t i = 0; i < 2; ++i) {
        std::memcpy(&d[i][0], dy + i * row + c, sizeof(Vector));
        std::memcpy(&d[i][1], dy + i * row + channels + c, sizeof(Vector));
      }
      for (std::size_t j = 0; j < 2; ++j) {
        t[0][j] = d[0][j];
        t[1][j] = d[0][j] + d[1][j];
        t[2][j] = d[0][j] - d[1][j];
        t[3][j] = -d[1][j];
      }
      for (std::size_t i = 0; i < 4; ++i) {
        m[i][0] = t[i][0];
        m[i][1] = t[i][0] + t[i][1];
        m[i][2] = t[i][0] - t[i][1];
        m[i][3] = -t[i][1];
      }
      for (std::size_t k = 0; k < kPlaces; ++k)
        std::memcpy(out + k * plane + c, &m[k / 4][k % 4], sizeof(Vector));
    }
  });
}

// out [16, size] = G g Gᵀ of g [9, size]
void transform_kernel(const float* g, std::size_t size, float* out) {
  for (std::size_t i = 0; i < size; ++i) {
    float t[4][3];
    for (std::size_t j = 0; j < 3; ++j) {
      const float a = g[j * size + i], b = g[(3 + j) * size + i], c = g[(6 + j) * size + i];
      t[0][j] = a;
      t[1][j] = 0.5f * (a + b + c);
      t[2][j] = 0.5f * (a - b + c);
      t[3][j] = c;
    }
    for (std::size_t k = 0; k < 4; ++k) {
      float* places = out + 4 * k * size + i;
      places[0] = t[k][0];
      places[size] = 0.5f * (t[k][0] + t[k][1] + t[k][2]);
      places[2 * size] = 0.5f * (t[k][0] - t[k][1] + t[k][2]);
      places[3 * size] = t[k][2];
    }
  }
}

// dg [9, size] = keep dg + Gᵀ w G, the transpose of transform_kernel().
void transform_kernel_gradient(const float* w, std::size_t size, float keep, float* dg) {
  for (std::size_t i = 0; i < size; ++i) {
    float t[3][4];
    for (std::size_t j = 0; j < 4; ++j) {
      const float a = w[j * size + i], b = w[(4 + j) * size + i], c = w[(8 + j) * size + i],
                  d = w[(12 + j) * size + i];
      t[0][j] = a + 0.5f * (b + c);
      t[1][j] = 0.5f * (b - c);
      t[2][j] = 0.5f * (b + c) + d;
    }
    for (std::size_t k = 0; k < 3; ++k) {
      const float g[3] = {t[k][0] + 0.5f * (t[k][1] + t[k][2]), 0.5f * (t[k][1] - t[k][2]),
                          0.5f * (t[k][1] + t[k][2]) + t[k][3]};
      for (std::size_t j = 0; j < 3; ++j) {
        float& out = dg[(3 * k + j) * size + i];
        out = keep == 0.0f ? g[j] : keep * out + g[j];
      }
    }
  }
}

// Calls visit(tile number, position of its first output, 16 input positions); a position in the
// padding comes as `outside`.
template <class Visit>
void visit_tiles(const ConvolutionShape& s, std::size_t outside, const Visit& visit) {
  std::size_t number = 0;
  for (std::size_t oy = 0; oy < s.out_height; oy += 2) {
    for (std::size_t ox = 0; ox < s.out_width; ox += 2) {
      std::array<std::size_t, kPlaces> positions;
      for (std::size_t k = 0; k < kPlaces; ++k) {
        // Unsigned: a position before the map wraps around to one far behind it.
        const std::size_t iy = oy + k / 4 - s.pad_top, ix = ox + k % 4 - s.pad_left;
        positions[k] = iy < s.height && ix < s.width ? iy * s.width + ix : outside;
      }
      visit(number++, oy * s.out_width + ox, positions);
    }
  }
}

std::size_t tiles_of(const ConvolutionShape& s) { return s.positions() / 4; }

// out [16, n tiles, in]
void transform_inputs(const ConvolutionShape& s, std::size_t n, const float* x, const float* zeros,
                      float* out) {
  const std::size_t plane = n * tiles_of(s) * s.in, outside = s.height * s.width;
  for (std::size_t image = 0; image < n; ++image, x += s.input_size()) {
    visit_tiles(s, outside, [&](std::size_t number, std::size_t, const auto& positions) {
      Tile tile;
      for (std::size_t k = 0; k < kPlaces; ++k) {
        tile[k] = positions[k] == outside ? zeros : x + positions[k] * s.in;
      }
      transform_input(tile, s.in, plane, out + (image * tiles_of(s) + number) * s.in);
    });
  }
}

// out [16, n tiles, out]
void transform_output_gradients(const ConvolutionShape& s, std::size_t n, const float* dy,
                                float* out) {
  const std::size_t plane = n * tiles_of(s) * s.out;
  for (std::size_t image = 0; image < n; ++image, dy += s.output_size()) {
    visit_tiles(s, 0, [&](std::size_t number, std::size_t first, const auto&) {
      transform_output_gradient(dy + first * s.out, s.out, s.out_width * s.out, plane,
                                out + (image * tiles_of(s) + number) * s.out);
    });
  }
}

}  // namespace

bool Winograd::takes(const ConvolutionShape& s) {
  return s.kernel == 3 && s.stride == 1 && s.out_height % 2 == 0 && s.out_width % 2 == 0 &&
         s.in % kWidth == 0 && s.out % kWidth == 0;
}

std::size_t Winograd::images_at_once(const ConvolutionShape& s, std::size_t n) const {
  const std::size_t floats = kPlaces * tiles_of(s) * (s.in + s.out);
  return std::clamp<std::size_t>(kFloatsAtOnce / floats, 1, n);
}

void Winograd::forward(const ConvolutionShape& s, std::size_t n, const float* x, const float* w,
                       float* y) {
  const std::size_t step = images_at_once(s, n), tiles = tiles_of(s), size = s.in * s.out;
  grow(inputs_, kPlaces * step * tiles * s.in);
  grow(outputs_, kPlaces * step * tiles * s.out);
  grow(kernel_, kPlaces * size);
  grow(zeros_, s.in);
  transform_kernel(w, size, kernel_.data());
  for (std::size_t i = 0; i < n; i += step) {
    const std::size_t count = std::min(step, n - i), rows = count * tiles;
    transform_inputs(s, count, x + i * s.input_size(), zeros_.data(), inputs_.data());
    for (std::size_t k = 0; k < kPlaces; ++k) {
      multiply(matrix(inputs_.data() + k * rows * s.in, rows, s.in),
               matrix(kernel_.data() + k * size, s.in, s.out), outputs_.data() + k * rows * s.out,
               s.out);
    }
    for (std::size_t image = 0; image < count; ++image) {
      float* out = y + (i + image) * s.output_size();
      visit_tiles(s, 0, [&](std::size_t number, std::size_t first, const auto&) {
        transform_output(outputs_.data() + (image * tiles + number) * s.out, s.out, rows * s.out,
                         s.out_width * s.out, out + first * s.out);
      });
    }
  }
}

void Winograd::input_gradient(const ConvolutionShape& s, std::size_t n, const float* dy,
                              const float* w, float* dx) {
  const std::size_t step = images_at_once(s, n), tiles = tiles_of(s), size = s.in * s.out;
  const std::size_t outside = s.height * s.width;
  grow(inputs_, kPlaces * step * tiles * s.in);
  grow(outputs_, kPlaces * step * tiles * s.out);
  grow(kernel_, kPlaces * size);
  grow(spare_, s.in);
  transform_kernel(w, size, kernel_.data());
  std::fill_n(dx, n * s.input_size(), 0.0f);
  for (std::size_t i = 0; i < n; i += step) {
    const std::size_t count = std::min(step, n - i), rows = count * tiles;
    transform_output_gradients(s, count, dy + i * s.output_size(), outputs_.data());
    for (std::size_t k = 0; k < kPlaces; ++k) {
      multiply(matrix(outputs_.data() + k * rows * s.out, rows, s.out),
               transposed(matrix(kernel_.data() + k * size, s.in, s.out)),
               inputs_.data() + k * rows * s.in, s.in);
    }
    for (std::size_t image = 0; image < count; ++image) {
      float* out = dx + (i + image) * s.input_size();
      visit_tiles(s, outside, [&](std::size_t number, std::size_t, const auto& positions) {
        MutableTile tile;
        for (std::size_t k = 0; k < kPlaces; ++k) {
          tile[k] = positions[k] == outside ? spare_.data() : out + positions[k] * s.in;
        }
        add_input_transposed(inputs_.data() + (image * tiles + number) * s.in, s.in, rows * s.in,
                             tile);
      });
    }
  }
}

void Winograd::weight_gradient(const ConvolutionShape& s, std::size_t n, const float* x,
                               const float* dy, float keep, float* dw) {
  const std::size_t step = images_at_once(s, n), tiles = tiles_of(s), size = s.in * s.out;
  grow(inputs_, kPlaces * step * tiles * s.in);
  grow(outputs_, kPlaces * step * tiles * s.out);
  grow(kernel_, kPlaces * size);
  grow(zeros_, s.in);
  for (std::size_t i = 0; i < n; i += step) {
    const std::size_t count = std::min(step, n - i), rows = count * tiles;
    transform_inputs(s, count, x + i * s.input_size(), zeros_.data(), inputs_.data());
    transform_output_gradients(s, count, dy + i * s.output_size(), outputs_.data());
    for (std::size_t k = 0; k < kPlaces; ++k) {
      multiply(transposed(matrix(inputs_.data() + k * rows * s.in, rows, s.in)),
               matrix(outputs_.data() + k * rows * s.out, rows, s.out), kernel_.data() + k * size,
               s.out, i == 0 ? 0.0f : 1.0f);
    }
  }
  transform_kernel_gradient(kernel_.data(), size, keep, dw);
}

}  // namespace fedep
