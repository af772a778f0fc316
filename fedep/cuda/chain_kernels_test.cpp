#include "fedep/cuda/chain_kernels.h"

#include <gtest/gtest.h>

#include "fedep/cuda/coordinates.h"
#include "fedep/cuda/device.h"
#include "fedep/random/stream.h"

namespace fedep {
namespace {

constexpr std::size_t kClients = 3, kStride = 10240;

class ChainKernels : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = device_problem(); !why.empty()) GTEST_SKIP() << why;
    const std::vector<gpu::Chunk> ranges = chunks_of({{3, 4100}, {5000, 5001}, {6007, 10203}});
    chunks_ = DeviceArray<gpu::Chunk>(std::span<const gpu::Chunk>(ranges));
    steps_ = DeviceArray<std::int32_t>(std::span<const std::int32_t>(std::vector{4, 0, 7}));
    iterate_ = DeviceArray<float>(kClients * kStride);
    mean_ = DeviceArray<float>(kClients * kStride);
    squares_ = DeviceArray<float>(kClients * kStride);
    kept_ = DeviceArray<float>(gpu::kMostKept * kClients * gpu::kept_stride(chunks()));
  }

  gpu::Chunks chunks() const { return {chunks_.data(), int(chunks_.size())}; }
  gpu::ChainRows rows(bool averages) {
    return {.clients = int(kClients),
            .stride = kStride,
            .theta = iterate_.data(),
            .sum = averages ? iterate_.data() : nullptr,
            .mean = mean_.data(),
            .squares = squares_.data()};
  }
  void draw(std::uint32_t sample) {
    std::vector<float> values(kClients * kStride);
    fill_normal({.seed = 9, .step = sample}, values);
    iterate_.upload(values);
  }

  struct Found {
    std::vector<float> mean, squares;
    bool operator==(const Found&) const = default;
  };

  // Of `samples` samples, of which up to `at_once` wait for the next.
  Found moments(int samples, int at_once, bool averages) {
    mean_.upload(std::vector<float>(kClients * kStride, -5.0f));
    squares_.upload(std::vector<float>(kClients * kStride, -6.0f));
    int kept = 0;
    for (int n = 1; n <= samples; ++n) {
      draw(std::uint32_t(n));
      if (kept < at_once) {
        gpu::keep_sample(rows(averages), chunks(), steps_.data(), kept_.data(), kept++,
                         device_stream());
        continue;
      }
      gpu::add_samples(rows(averages), chunks(), steps_.data(), kept_.data(), kept, true, n - kept,
                       device_stream());
      kept = 0;
    }
    if (kept > 0) {
      gpu::add_samples(rows(averages), chunks(), steps_.data(), kept_.data(), kept, false,
                       samples - kept + 1, device_stream());
    }
    return {mean_.download(), squares_.download()};
  }

  DeviceArray<gpu::Chunk> chunks_;
  DeviceArray<std::int32_t> steps_;
  DeviceArray<float> iterate_, mean_, squares_, kept_;
};

TEST_F(ChainKernels, SamplesAddedTogetherGiveTheMomentsOfSamplesAddedOneByOne) {
  for (const bool averages : {false, true}) {
    for (const int samples : {1, 2, 4, 5, 7, 10}) {
      const Found expected = moments(samples, 0, averages);
      for (int at_once = 1; at_once <= gpu::kMostKept; ++at_once) {
        EXPECT_EQ(moments(samples, at_once, averages), expected) << samples << " " << at_once;
      }
      // Nothing but the chunks' coordinates is touched, and all of these are.
      for (std::size_t i = 0; i < kClients * kStride; ++i) {
        const std::size_t at = i % kStride;
        const bool inside = (at >= 3 && at < 4100) || at == 5000 || (at >= 6007 && at < 10203);
        ASSERT_EQ(expected.mean[i] != -5.0f, inside) << i;
        ASSERT_EQ(expected.squares[i] != -6.0f, inside) << i;
      }
    }
  }
}

}  // namespace
}  // namespace fedep
