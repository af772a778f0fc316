#include "fedep/sim/chain/sgd_update.h"

#include <algorithm>

#include "fedep/model/layer/vector_width.h"

namespace fedep {
namespace {

// Loops at the full width of the CPU's vector unit, with the same bits at every width.

void prior_step_isotropic(std::size_t size, float lr, float n, float lambda, const float* eta,
                          float* momentum, float* out) {
  at_full_width([=]() __attribute__((always_inline)) {
    float* __restrict m = momentum;
    float* __restrict theta = out;
    for (std::size_t i = 0; i < size; ++i) {
      m[i] += (lambda * theta[i] - eta[i]) * n;
      theta[i] -= lr * m[i];
    }
  });
}

void prior_step_diagonal(std::size_t size, float lr, float n, const float* lambda, const float* eta,
                         float* momentum, float* out) {
  at_full_width([=]() __attribute__((always_inline)) {
    float* __restrict m = momentum;
    float* __restrict theta = out;
    for (std::size_t i = 0; i < size; ++i) {
      m[i] += (lambda[i] * theta[i] - eta[i]) * n;
      theta[i] -= lr * m[i];
    }
  });
}

// Blocks small enough for the cache, so that several steps cost one pass over memory.
constexpr std::size_t kBlock = 1024;

void scale_momentum(std::size_t size, float momentum, float* m) {
  at_full_width([=]() __attribute__((always_inline)) {
    for (std::size_t i = 0; i < size; ++i) m[i] *= momentum;
  });
}

void accumulate_both(std::size_t size, float weight, const float* x, float* mean, float* squares) {
  at_full_width([=]() __attribute__((always_inline)) {
    float* __restrict middle = mean;
    float* __restrict about = squares;
    for (std::size_t i = 0; i < size; ++i) {
      // RunningMoments::add(), which GCC does not inline into a function for another CPU.
      const float gap = x[i] - middle[i];
      middle[i] += weight * gap;
      about[i] += gap * (x[i] - middle[i]);
    }
  });
}

void accumulate_mean(std::size_t size, float weight, const float* x, float* mean) {
  at_full_width([=]() __attribute__((always_inline)) {
    for (std::size_t i = 0; i < size; ++i) mean[i] += weight * (x[i] - mean[i]);
  });
}

void add_all(std::size_t size, const float* from, float* to) {
  at_full_width([=]() __attribute__((always_inline)) {
    for (std::size_t i = 0; i < size; ++i) to[i] += from[i];
  });
}

}  // namespace

void prior_step(const SgdNumbers& numbers, std::span<const float> eta,
                std::span<const float> lambda, std::span<float> momentum, std::span<float> theta) {
  if (lambda.size() == 1) {
    prior_step_isotropic(theta.size(), numbers.lr, numbers.per_example, lambda[0], eta.data(),
                         momentum.data(), theta.data());
  } else {
    prior_step_diagonal(theta.size(), numbers.lr, numbers.per_example, lambda.data(), eta.data(),
                        momentum.data(), theta.data());
  }
}

void coast(const SgdNumbers& numbers, int steps, std::span<const float> eta,
           std::span<const float> lambda, std::span<float> momentum, std::span<float> theta) {
  for (std::size_t begin = 0; begin < theta.size(); begin += kBlock) {
    const std::size_t size = std::min(kBlock, theta.size() - begin);
    const auto block_lambda = lambda.size() == 1 ? lambda : lambda.subspan(begin, size);
    const auto m = momentum.subspan(begin, size);
    for (int step = 0; step < steps; ++step) {
      scale_momentum(size, numbers.momentum, m.data());
      prior_step(numbers, eta.subspan(begin, size), block_lambda, m, theta.subspan(begin, size));
    }
  }
}

void accumulate(int n, std::span<const float> sample, std::span<float> mean,
                std::span<float> squares) {
  const float weight = 1.0f / float(n);
  if (squares.empty()) {
    accumulate_mean(sample.size(), weight, sample.data(), mean.data());
  } else {
    accumulate_both(sample.size(), weight, sample.data(), mean.data(), squares.data());
  }
}

void add(std::span<const float> from, std::span<float> to) {
  add_all(from.size(), from.data(), to.data());
}

}  // namespace fedep
