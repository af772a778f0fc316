#include "fedep/cuda/round/sample_moves.h"

#include <cmath>

#include <gtest/gtest.h>

#include "fedep/algorithm/fed_pa.h"
#include "fedep/cuda/round/sample_kernels.h"
#include "fedep/random/stream.h"

namespace fedep {
namespace {

using V = HostVector<float>;

class SampleMoves : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = device_problem(); !why.empty()) GTEST_SKIP() << why;
  }
  void draw(std::size_t count, std::size_t size) {
    here_.clear();
    there_.clear();
    initial_ = V(size);
    fill_normal({.seed = 3}, initial_.span());
    for (std::uint32_t i = 0; i < count; ++i) {
      V noise(size);
      fill_normal({.seed = 4, .step = i}, noise.span());
      here_.push_back(initial_ + (0.1f * noise + 0.2f));
      there_.push_back(to_device(here_.back()));
    }
  }

  V initial_;
  std::vector<V> here_;
  std::vector<DeviceVector> there_;
};

TEST_F(SampleMoves, ProductsAndDeltasAreTheHosts) {
  for (const std::size_t count : {1, 2, 5, 10, 20, gpu::kMostSamples, gpu::kMostSamples + 1}) {
    for (const std::size_t size : {1, 255, 257, 70001}) {
      draw(count, size);
      const std::vector<double> products = products_of_moves(there_, to_device(initial_));
      const std::vector<double> expected = products_of_moves(std::span<const V>(here_), initial_);
      for (std::size_t i = 0; i < products.size(); ++i) {
        const std::size_t row = i / count, column = i % count;
        const double scale =
            std::sqrt(expected[row * count + row] * expected[column * count + column]);
        EXPECT_NEAR(products[i], expected[i], 1e-12 * scale) << count << " " << size << " " << i;
      }
      EXPECT_EQ(products_of_moves(there_, to_device(initial_)), products);  // the same again
      const V delta =
          to_host(posterior_delta(std::span<const DeviceVector>(there_), to_device(initial_), 0.1));
      const V host = posterior_delta(std::span<const V>(here_), initial_, 0.1);
      for (std::size_t i = 0; i < size; ++i) ASSERT_NEAR(delta[i], host[i], 1e-5) << i;
    }
  }
}

}  // namespace
}  // namespace fedep
