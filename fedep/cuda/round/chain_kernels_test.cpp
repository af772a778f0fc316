#include "fedep/cuda/round/chain_kernels.h"

#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "fedep/cuda/device/coordinates.h"
#include "fedep/cuda/device/device.h"
#include "fedep/random/stream.h"

namespace fedep {
namespace {

constexpr std::size_t kClients = 3, kStride = 10240, kAll = kClients * kStride;
constexpr float kUntouched = -5.0f;

std::vector<float> normals(std::uint32_t which) {
  std::vector<float> values(kAll);
  fill_normal({.seed = 9, .step = which}, values);
  return values;
}

class ChainKernels : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = device_problem(); !why.empty()) GTEST_SKIP() << why;
    chunks_ = DeviceArray<gpu::Chunk>(chunks_of(ranges_));
    d_steps_ = DeviceArray<std::int32_t>(steps_);
    theta_ = DeviceArray<float>(kAll);
    momentum_ = DeviceArray<float>(kAll);
    sum_ = DeviceArray<float>(kAll);
    mean_ = DeviceArray<float>(kAll);
    squares_ = DeviceArray<float>(kAll);
    kept_ = DeviceArray<float>(gpu::kMostKept * kClients * gpu::kept_stride(chunks()));
  }

  gpu::Chunks chunks() const { return {chunks_.data(), int(chunks_.size())}; }
  gpu::ChainRows rows(bool averages, bool variances) {
    return {.clients = int(kClients),
            .stride = kStride,
            .theta = theta_.data(),
            .momentum = momentum_.data(),
            .sum = averages ? sum_.data() : nullptr,
            .mean = mean_.data(),
            .squares = variances ? squares_.data() : nullptr};
  }
  bool inside(std::size_t i) const {
    for (const Range& range : ranges_) {
      if (i % kStride >= range.begin && i % kStride < range.end) return true;
    }
    return false;
  }
  // What the n-th sample is made of.
  static std::vector<float> thetas(int n) { return normals(std::uint32_t(n)); }
  static std::vector<float> sums(int n) { return normals(std::uint32_t(100 + n)); }

  struct Moments {
    std::vector<float> mean = std::vector<float>(kAll, kUntouched);
    std::vector<float> squares = mean;
    bool operator==(const Moments&) const = default;
  };

  // Welford's formula, sample by sample.
  Moments expected(int samples, bool averages, bool variances) const {
    Moments out;
    for (int n = 1; n <= samples; ++n) {
      const std::vector<float> theta = thetas(n), sum = sums(n);
      for (std::size_t i = 0; i < kAll; ++i) {
        if (!inside(i)) continue;
        const int taken = steps_[i / kStride];
        const float x = averages && taken > 0 ? sum[i] / float(taken) : theta[i];
        float mean = n > 1 ? out.mean[i] : 0.0f, squares = n > 1 ? out.squares[i] : 0.0f;
        const float gap = x - mean, weight = 1.0f / float(n);
        mean += weight * gap;
        squares += gap * (x - mean);
        out.mean[i] = mean;
        if (variances) out.squares[i] = squares;
      }
    }
    return out;
  }

  // Of as many samples, up to `at_once` of which wait for the next.
  Moments found(int samples, int at_once, bool averages, bool variances) {
    const gpu::ChainRows own = rows(averages, variances);
    mean_.upload(std::vector<float>(kAll, kUntouched));
    squares_.upload(std::vector<float>(kAll, kUntouched));
    int kept = 0;
    for (int n = 1; n <= samples; ++n) {
      theta_.upload(thetas(n));
      sum_.upload(sums(n));
      if (kept < at_once) {
        gpu::keep_sample(own, chunks(), d_steps_.data(), kept_.data(), kept++, device_stream());
        continue;
      }
      gpu::add_samples(own, chunks(), d_steps_.data(), kept_.data(), kept, true, n - kept,
                       device_stream());
      kept = 0;
    }
    if (kept > 0) {
      gpu::add_samples(own, chunks(), d_steps_.data(), kept_.data(), kept, false,
                       samples - kept + 1, device_stream());
    }
    return {mean_.download(), squares_.download()};
  }

  const std::vector<Range> ranges_{{3, 4100}, {5000, 5001}, {6007, 10203}};
  const std::vector<std::int32_t> steps_{4, 0, 7};
  DeviceArray<gpu::Chunk> chunks_;
  DeviceArray<std::int32_t> d_steps_;
  DeviceArray<float> theta_, momentum_, sum_, mean_, squares_, kept_;
};

TEST_F(ChainKernels, MomentsAreThoseOfTheSamplesHoweverManyWait) {
  for (const bool averages : {false, true}) {
    for (const bool variances : {false, true}) {
      for (const int samples : {1, 2, 5, 7, 10}) {
        const Moments moments = expected(samples, averages, variances);
        for (int at_once = 0; at_once <= gpu::kMostKept; ++at_once) {
          EXPECT_EQ(found(samples, at_once, averages, variances), moments)
              << samples << " " << at_once << " " << averages << variances;
        }
      }
    }
  }
}

TEST_F(ChainKernels, RowsBeginAsTheyAreTold) {
  const std::vector<float> start = normals(1), added{0.5f, 0.25f, 0.0f};
  const std::vector<float> eta = normals(2), lambda = normals(3);
  const DeviceArray<float> d_start(start), d_eta(eta), d_lambda(lambda), d_added(added);
  std::vector<const float*> etas, lambdas;
  for (std::size_t c = 0; c < kClients; ++c) {
    etas.push_back(d_eta.data() + c * kStride);
    lambdas.push_back(d_lambda.data() + c * kStride);
  }
  const DeviceArray<const float*> d_etas(etas), d_lambdas(lambdas);
  const std::vector<float> untouched(kAll, kUntouched);
  DeviceArray<float> eta_rows(kAll), lambda_rows(kAll);
  for (const std::size_t size : {std::size_t(1), std::size_t(3), std::size_t(4), std::size_t(1027),
                                 std::size_t(9001), kStride}) {
    for (const bool with_eta : {false, true}) {
      for (const bool with_lambda : {false, true}) {
        SCOPED_TRACE(testing::Message() << size << " " << with_eta << with_lambda);
        for (DeviceArray<float>* array : {&theta_, &momentum_, &eta_rows, &lambda_rows}) {
          array->upload(untouched);
        }
        gpu::start_chains(rows(false, false),
                          {.size = size,
                           .theta = d_start.data(),
                           .eta = with_eta ? d_etas.data() : nullptr,
                           .lambda = with_lambda ? d_lambdas.data() : nullptr,
                           .added = d_added.data(),
                           .eta_rows = eta_rows.data(),
                           .lambda_rows = lambda_rows.data()},
                          device_stream());
        const auto expect = [&](const DeviceArray<float>& array, const auto& value) {
          std::vector<float> expected = untouched;
          for (std::size_t c = 0; c < kClients; ++c) {
            for (std::size_t i = 0; i < size; ++i) expected[c * kStride + i] = value(c, i);
          }
          EXPECT_EQ(array.download(), expected);
        };
        expect(theta_, [&](std::size_t, std::size_t i) { return start[i]; });
        expect(momentum_, [](std::size_t, std::size_t) { return 0.0f; });
        expect(eta_rows, [&](std::size_t c, std::size_t i) {
          return with_eta ? eta[c * kStride + i] : kUntouched;
        });
        expect(lambda_rows, [&](std::size_t c, std::size_t i) {
          return with_lambda ? lambda[c * kStride + i] + added[c] : kUntouched;
        });
      }
    }
  }
}

}  // namespace
}  // namespace fedep
