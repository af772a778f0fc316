#include "fedep/model/layer/elementwise.h"

#include <algorithm>
#include <cassert>
#include <vector>

#include "fedep/model/blas.h"
#include "fedep/model/layer/vector_width.h"

namespace fedep {

void add_to(const float* x, std::size_t count, float* y) {
  at_full_width([=]() __attribute__((always_inline)) {
    for (std::size_t i = 0; i < count; ++i) y[i] += x[i];
  });
}

void add_squares(const float* x, std::size_t count, float* sum) {
  at_full_width([=]() __attribute__((always_inline)) {
    for (std::size_t i = 0; i < count; ++i) sum[i] += x[i] * x[i];
  });
}

void mask_by_sign(const float* y, std::size_t count, float* x) {
  at_full_width([=]() __attribute__((always_inline)) {
    for (std::size_t i = 0; i < count; ++i) x[i] = y[i] > 0.0f ? x[i] : 0.0f;
  });
}

void scale_by(const float* y, std::size_t count, float* x) {
  at_full_width([=]() __attribute__((always_inline)) {
    for (std::size_t i = 0; i < count; ++i) x[i] *= y[i];
  });
}

void add_bias(const float* bias, std::size_t rows, std::size_t channels, float* y) {
  for (std::size_t row = 0; row < rows; ++row, y += channels) add_to(bias, channels, y);
}

void add_bias_rectify(const float* bias, std::size_t rows, std::size_t channels, float* y) {
  at_full_width([=]() __attribute__((always_inline)) {
    for (std::size_t row = 0; row < rows; ++row) {
      float* out = y + row * channels;
      for (std::size_t c = 0; c < channels; ++c) {
        const float sum = out[c] + bias[c];
        out[c] = sum > 0.0f ? sum : 0.0f;
      }
    }
  });
}

void bias_gradient(const float* dy, std::size_t rows, std::size_t channels, float keep, float* db) {
  if (keep == 0.0f) {
    std::fill_n(db, channels, 0.0f);
  } else {
    for (std::size_t c = 0; c < channels; ++c) db[c] *= keep;
  }
  for (std::size_t row = 0; row < rows; ++row) add_to(dy + row * channels, channels, db);
}

void add_squared_bias_gradient(const float* dy, std::size_t n, std::size_t positions,
                               std::size_t channels, float* sum) {
  std::vector<float> one(channels);
  for (std::size_t i = 0; i < n; ++i, dy += positions * channels) {
    bias_gradient(dy, positions, channels, 0.0f, one.data());
    add_squares(one.data(), channels, sum);
  }
}

namespace {

// sum[i, lane] for kLanes neighbouring outputs: products of one example build up in registers, are
// squared there, and the sum over examples meets memory once.
constexpr std::size_t kLanes = 32;

void square_lanes(std::size_t rows, std::size_t k, std::size_t in, const float* x, const float* d,
                  std::size_t out, float* sum) {
  at_full_width([=]() __attribute__((always_inline)) {
    for (std::size_t i = 0; i < in; ++i) {
      float total[kLanes];
      for (std::size_t l = 0; l < kLanes; ++l) total[l] = sum[i * out + l];
      const float* d_row = d;
      for (std::size_t row = 0; row < rows; row += k) {
        float product[kLanes] = {};
        for (std::size_t j = 0; j < k; ++j, d_row += kLanes) {
          const float a = x[(row + j) * in + i];
          for (std::size_t l = 0; l < kLanes; ++l) product[l] += a * d_row[l];
        }
        for (std::size_t l = 0; l < kLanes; ++l) total[l] += product[l] * product[l];
      }
      for (std::size_t l = 0; l < kLanes; ++l) sum[i * out + l] = total[l];
    }
  });
}

}  // namespace

void add_squared_products(std::size_t n, std::size_t k, std::size_t in, std::size_t out,
                          const float* x, const float* d, float* sum) {
  const std::size_t rows = n * k;
  if (k == 1) {
    std::vector<float> x2(rows * in, 0.0f), d2(rows * out, 0.0f);
    add_squares(x, x2.size(), x2.data());
    add_squares(d, d2.size(), d2.data());
    multiply(transposed(matrix(x2.data(), rows, in)), matrix(d2.data(), rows, out), sum, out, 1.0f);
    return;
  }
  std::vector<float> lanes(rows * kLanes);  // kLanes columns of d, close together
  std::size_t first = 0;
  for (; first + kLanes <= out; first += kLanes) {
    for (std::size_t row = 0; row < rows; ++row) {
      std::copy_n(d + row * out + first, kLanes, lanes.data() + row * kLanes);
    }
    square_lanes(rows, k, in, x, lanes.data(), out, sum + first);
  }
  for (std::size_t i = 0; i < in; ++i) {
    for (std::size_t o = first; o < out; ++o) {
      for (std::size_t row = 0; row < rows; row += k) {
        float product = 0.0f;
        for (std::size_t j = row; j < row + k; ++j) product += x[j * in + i] * d[j * out + o];
        sum[i * out + o] += product * product;
      }
    }
  }
}

void fill_dropout(const Address& address, double rate, std::size_t first, std::span<float> factor) {
  const std::uint32_t dropped = std::uint32_t(rate * 256.0);  // of 256 values of a byte
  assert(first % 16 == 0 && double(dropped) == rate * 256.0 && dropped < 256);
  const float kept = float(1.0 / (1.0 - rate));
  const Stream stream(address);
  for (std::size_t i = 0; i < factor.size(); i += 16) {
    const PhiloxCounter words = stream.block((first + i) / 16);
    const std::size_t count = std::min<std::size_t>(16, factor.size() - i);
    for (std::size_t j = 0; j < count; ++j) {
      const std::uint32_t byte = (words[j / 4] >> (8 * (j % 4))) & 0xFFu;
      factor[i + j] = byte < dropped ? 0.0f : kept;
    }
  }
}

}  // namespace fedep
