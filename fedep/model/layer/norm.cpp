#include "fedep/model/layer/norm.h"

#include <cassert>
#include <cmath>

#include "fedep/model/layer/elementwise.h"
#include "fedep/model/layer/vector_width.h"

namespace fedep {
namespace {

constexpr float kEpsilon = 1e-3f;
constexpr std::size_t kLanes = 16;  // sums run in this many lanes, whatever the vector unit

float total(const float* lanes) {
  float sum = 0.0f;
  for (std::size_t l = 0; l < kLanes; ++l) sum += lanes[l];
  return sum;
}

struct Moments {
  float mean, variance;
};

Moments moments(const float* x, std::size_t segments, std::size_t length, std::size_t stride) {
  return at_full_width([=]() __attribute__((always_inline)) {
    const float inverse = 1.0f / float(segments * length);
    float lanes[kLanes] = {};
    for (std::size_t s = 0; s < segments; ++s) {
      const float* row = x + s * stride;
      std::size_t i = 0;
      for (; i + kLanes <= length; i += kLanes) {
        for (std::size_t l = 0; l < kLanes; ++l) lanes[l] += row[i + l];
      }
      for (std::size_t l = 0; i < length; ++i, ++l) lanes[l] += row[i];
    }
    const float mean = total(lanes) * inverse;
    float squares[kLanes] = {};
    for (std::size_t s = 0; s < segments; ++s) {
      const float* row = x + s * stride;
      std::size_t i = 0;
      for (; i + kLanes <= length; i += kLanes) {
        for (std::size_t l = 0; l < kLanes; ++l) {
          const float centred = row[i + l] - mean;
          squares[l] += centred * centred;
        }
      }
      for (std::size_t l = 0; i < length; ++i, ++l) {
        squares[l] += (row[i] - mean) * (row[i] - mean);
      }
    }
    return Moments{mean, total(squares) * inverse};
  });
}

void standardise(const float* x, std::size_t count, float mean, float scale, float* y) {
  at_full_width([=]() __attribute__((always_inline)) {
    for (std::size_t i = 0; i < count; ++i) y[i] = (x[i] - mean) * scale;
  });
}

void rectify(const float* x, std::size_t count, float* y) {
  at_full_width([=]() __attribute__((always_inline)) {
    for (std::size_t i = 0; i < count; ++i) y[i] = x[i] > 0.0f ? x[i] : 0.0f;
  });
}

struct Projections {
  float dy, dy_y;  // Σ dy, Σ dy y
};

Projections project(const float* dy, const float* y, std::size_t segments, std::size_t length,
                    std::size_t stride) {
  return at_full_width([=]() __attribute__((always_inline)) {
    float a[kLanes] = {}, b[kLanes] = {};
    for (std::size_t s = 0; s < segments; ++s) {
      const float* dy_row = dy + s * stride;
      const float* y_row = y + s * stride;
      std::size_t i = 0;
      for (; i + kLanes <= length; i += kLanes) {
        for (std::size_t l = 0; l < kLanes; ++l) {
          a[l] += dy_row[i + l];
          b[l] += dy_row[i + l] * y_row[i + l];
        }
      }
      for (std::size_t l = 0; i < length; ++i, ++l) {
        a[l] += dy_row[i];
        b[l] += dy_row[i] * y_row[i];
      }
    }
    return Projections{total(a), total(b)};
  });
}

// dx += scale (dy - mean_dy - y mean_dy_y)
void add_derivative(const float* dy, const float* y, std::size_t count, Projections mean,
                    float scale, float* dx) {
  at_full_width([=]() __attribute__((always_inline)) {
    for (std::size_t i = 0; i < count; ++i) {
      dx[i] += scale * (dy[i] - mean.dy - y[i] * mean.dy_y);
    }
  });
}

}  // namespace

Norm::Norm(NormKind kind, std::size_t positions, std::size_t channels)
    : positions_(positions),
      channels_(channels),
      segments_(kind == NormKind::per_position ? 1 : positions) {
  assert(channels % 2 == 0);
}

void Norm::forward(std::size_t n, const float* x, float* y, float* rectified) {
  const std::size_t length = channels_ / 2;
  inverse_std_.resize(groups(n));
  for (std::size_t group = 0; group < groups(n); ++group) {
    const std::size_t begin = group_begin(group);
    const Moments m = moments(x + begin, segments_, length, channels_);
    const float scale = 1.0f / std::sqrt(m.variance + kEpsilon);
    inverse_std_[group] = scale;
    for (std::size_t s = 0; s < segments_; ++s) {
      const std::size_t at = begin + s * channels_;
      standardise(x + at, length, m.mean, scale, y + at);
    }
  }
  if (rectified != nullptr) rectify(y, n * positions_ * channels_, rectified);
}

void Norm::add_backward(std::size_t n, const float* y, bool through_rectifier, float* dy,
                        float* dx) const {
  if (through_rectifier) mask_by_sign(y, n * positions_ * channels_, dy);
  const std::size_t length = channels_ / 2;
  const float inverse = 1.0f / float(segments_ * length);
  for (std::size_t group = 0; group < groups(n); ++group) {
    const std::size_t begin = group_begin(group);
    const Projections sum = project(dy + begin, y + begin, segments_, length, channels_);
    const Projections mean{sum.dy * inverse, sum.dy_y * inverse};
    for (std::size_t s = 0; s < segments_; ++s) {
      const std::size_t at = begin + s * channels_;
      add_derivative(dy + at, y + at, length, mean, inverse_std_[group], dx + at);
    }
  }
}

}  // namespace fedep
