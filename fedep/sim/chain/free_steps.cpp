#include "fedep/sim/chain/free_steps.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "fedep/model/layer/vector_width.h"

namespace fedep {
namespace {

// Sixteen coordinates at a time, and four such groups side by side: they stay in registers for all
// steps, and no group waits for another.
using Lanes [[gnu::vector_size(64)]] = float;
constexpr std::size_t kLanes = 16, kGroups = 4, kBlock = kLanes * kGroups;

struct Block {
  std::array<float, kBlock> theta{}, sum{}, eta{}, lambda{};
};

// kBlock coordinates of travel(); no pointer but those of `end` may be null.
void travel_block(const SgdNumbers& numbers, std::span<const FreeStretch> way,
                  const RowPrior& prior, float decay, const float* start, const FreeEnd& end) {
  const float mu = numbers.momentum, lr = numbers.lr, n = numbers.per_example;
  const float *from_eta = prior.eta, *from_lambda = prior.lambda;
  at_full_width([=]() __attribute__((always_inline)) {
    Lanes theta[kGroups], m[kGroups]{}, sum[kGroups]{}, eta[kGroups], lambda[kGroups];
    Lanes mean[kGroups]{}, squares[kGroups]{};
    std::memcpy(theta, start, sizeof theta);
    std::memcpy(eta, from_eta, sizeof eta);
    std::memcpy(lambda, from_lambda, sizeof lambda);
    for (std::size_t i = 0; i < kGroups; ++i) lambda[i] += decay;
    for (const FreeStretch& stretch : way) {
      for (std::size_t step = 0; step < stretch.steps; ++step) {
#pragma GCC unroll 4
        for (std::size_t i = 0; i < kGroups; ++i) {
          m[i] = mu * m[i] + (lambda[i] * theta[i] - eta[i]) * n;
          theta[i] -= lr * m[i];
          sum[i] += theta[i];
        }
      }
      if (stretch.sample > 0) {
        const float weight = 1.0f / float(stretch.sample);
        for (std::size_t i = 0; i < kGroups; ++i) {
          const Lanes x = stretch.averaged > 0 ? sum[i] / stretch.averaged : theta[i];
          const Lanes gap = x - mean[i];
          mean[i] = stretch.sample == 1 ? x : mean[i] + weight * gap;
          squares[i] += gap * (x - mean[i]);
        }
      }
      if (stretch.new_sum) {
        for (std::size_t i = 0; i < kGroups; ++i) sum[i] = Lanes{};
      }
    }
    if (end.theta != nullptr) std::memcpy(end.theta, theta, sizeof theta);
    if (end.sum != nullptr) std::memcpy(end.sum, sum, sizeof sum);
    if (end.mean != nullptr) std::memcpy(end.mean, mean, sizeof mean);
    if (end.squares != nullptr) std::memcpy(end.squares, squares, sizeof squares);
  });
}

}  // namespace

FreeMap next(const FreeMap& map, const SgdNumbers& numbers, double lambda) {
  const double mu = double(numbers.momentum), lr = double(numbers.lr);
  const double n = double(numbers.per_example);
  FreeMap out;
  out.m_by_r = mu * map.m_by_r + n * (1 - lambda * map.by_r);
  out.m_by_m = mu * map.m_by_m - n * lambda * map.by_m;
  out.by_r = map.by_r + lr * out.m_by_r;
  out.by_m = map.by_m + lr * out.m_by_m;
  out.sum_by_r = map.sum_by_r + out.by_r;
  out.sum_by_m = map.sum_by_m + out.by_m;
  return out;
}

GradientMap with_gradient(const FreeMap& map, const FreeMap& one_more, std::size_t k,
                          const SgdNumbers& numbers, double lambda) {
  // The gradient's step moves θ by -lr g and m by g, from where the free ones go on.
  const double lr = double(numbers.lr), r = lambda * lr, n = double(k);
  return {.by_r = float(one_more.by_r),
          .by_m = float(one_more.by_m),
          .by_g = float(lr - map.by_r * r + map.by_m),
          .m_by_r = float(one_more.m_by_r),
          .m_by_m = float(one_more.m_by_m),
          .m_by_g = float(map.m_by_m - map.m_by_r * r),
          .sum_by_r = float(one_more.sum_by_r),
          .sum_by_m = float(one_more.sum_by_m),
          .sum_by_g = float(lr * (n + 1) - map.sum_by_r * r + map.sum_by_m),
          .steps = float(n + 1)};
}

void travel(const SgdNumbers& numbers, std::span<const FreeStretch> way, std::size_t width,
            const RowPrior& prior, float decay, const float* theta, const FreeEnd& end) {
  const auto from = [](float* values, std::size_t begin) {
    return values == nullptr ? nullptr : values + begin;
  };
  std::size_t begin = 0;
  for (; begin + kBlock <= width; begin += kBlock) {
    travel_block(numbers, way, {prior.eta + begin, prior.lambda + begin}, decay, theta + begin,
                 {from(end.theta, begin), from(end.sum, begin), from(end.mean, begin),
                  from(end.squares, begin)});
  }
  if (begin == width) return;
  const std::size_t count = width - begin;
  Block in;
  std::array<float, kBlock> mean{}, squares{};
  std::copy_n(theta + begin, count, in.theta.begin());
  std::copy_n(prior.eta + begin, count, in.eta.begin());
  std::copy_n(prior.lambda + begin, count, in.lambda.begin());
  travel_block(numbers, way, {in.eta.data(), in.lambda.data()}, decay, in.theta.data(),
               {in.theta.data(), in.sum.data(), mean.data(), squares.data()});
  if (end.theta != nullptr) std::copy_n(in.theta.begin(), count, end.theta + begin);
  if (end.sum != nullptr) std::copy_n(in.sum.begin(), count, end.sum + begin);
  if (end.mean != nullptr) std::copy_n(mean.begin(), count, end.mean + begin);
  if (end.squares != nullptr) std::copy_n(squares.begin(), count, end.squares + begin);
}

}  // namespace fedep
