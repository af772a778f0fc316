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

TEST_F(ChainKernels, ARateIsThatOfTheStepThatWasBegun) {
  const std::vector<float> rates{1, 2, 3, 4, 5, 6, 7, 8, 9};
  const DeviceArray<float> table(rates);
  DeviceArray<float> rate(kClients);
  DeviceArray<std::int32_t> step(1);
  for (std::int32_t i = 0; i < 3; ++i) {
    step.upload(std::vector<std::int32_t>{i});
    gpu::take_rates(table.data(), int(kClients), step.data(), rate.data(), device_stream());
    EXPECT_EQ(rate.download(),
              std::vector<float>(rates.begin() + 3 * i, rates.begin() + 3 * (i + 1)));
  }
}

// Two epochs from the second on, coordinate by coordinate in double; with one precision for all, one
// for each, averages, and variances each has a kernel or a path of its own.
TEST_F(ChainKernels, CoordinatesWithoutDataFollowRatesThatChange) {
  constexpr int kEpochs = 2, kLength = 7;
  const std::vector<float> theta = normals(1), momentum = normals(2), eta = normals(3);
  std::vector<float> lambdas = normals(4), rates(3 * kLength * kClients);
  for (float& x : lambdas) x = 3 + 0.5f * x;
  for (std::size_t i = 0; i < rates.size(); ++i) rates[i] = 0.1f / float(1 + i);
  const std::vector<float> numbers{3, 4, 5}, per_example{0.1f, 0.2f, 0.05f};
  const DeviceArray<float> d_eta(eta), d_lambdas(lambdas), d_numbers(numbers), d_per(per_example),
      d_rates(rates);
  for (const bool diagonal : {false, true}) {
    for (const bool averages : {false, true}) {
      for (const int first_sample : {0, 1}) {
        SCOPED_TRACE(testing::Message() << diagonal << averages << first_sample);
        theta_.upload(theta);
        momentum_.upload(momentum);
        gpu::ChainRows own = rows(averages, diagonal && first_sample > 0);
        own.eta = d_eta.data();
        own.lambda = diagonal ? d_lambdas.data() : d_numbers.data();
        own.diagonal = diagonal;
        own.per_example = d_per.data();
        own.lr = 1000;  // is not used
        own.mu = 0.5f;
        gpu::coast(own, chunks(), kEpochs, d_steps_.data(), first_sample, device_stream(),
                   {.rates = d_rates.data(),
                    .epoch_length = kLength,
                    .clients = int(kClients),
                    .first_epoch = 1});
        const std::vector<float> found = theta_.download(), found_m = momentum_.download();
        for (std::size_t i = 0; i < kAll; i += 37) {
          if (!inside(i)) continue;
          const std::size_t c = i / kStride;
          double x = double(theta[i]), m = double(momentum[i]);
          for (int epoch = 1; epoch < 1 + kEpochs; ++epoch) {
            for (int step = 0; step < steps_[c]; ++step) {
              const double pull = double(diagonal ? lambdas[i] : numbers[c]) * x - double(eta[i]);
              m = 0.5 * m + pull * double(per_example[c]);
              x -= double(rates[std::size_t(epoch * kLength + step) * kClients + c]) * m;
            }
          }
          ASSERT_NEAR(found[i], x, 1e-5);
          ASSERT_NEAR(found_m[i], m, 1e-5);
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
