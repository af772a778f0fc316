#include "fedep/sim/chain/kept_vector.h"

#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace fedep {
namespace {

TEST(KeptVector, IsZeroWhereItGrowsWhateverItsMemoryHeldBefore) {
  {
    KeptVector before;
    before.assign(100, 7.0f);
  }
  KeptVector next;
  next.resize(60);
  for (const float value : next) EXPECT_EQ(value, 0.0f);
  next[3] = 2;
  next.resize(80);
  EXPECT_EQ(next[3], 2.0f);
  EXPECT_EQ(next[79], 0.0f);
}

TEST(KeptVector, TakesTheMemoryThatTheLastOneOfTheThreadLeft) {
  const float* place = nullptr;
  {
    KeptVector before;
    before.resize(1000);
    place = before.data();
  }
  KeptVector next, other;
  next.resize(500);
  other.resize(500);
  EXPECT_EQ(next.data(), place);
  EXPECT_NE(other.data(), place);
  const float* elsewhere = nullptr;
  std::thread([&] {
    KeptVector own;
    own.resize(500);
    elsewhere = own.data();
  }).join();
  EXPECT_NE(elsewhere, place);
}

TEST(KeptVector, HasItsOwnValues) {
  KeptVector a, b;
  const std::vector<float> values{1, 2, 3};
  a.assign(values.begin(), values.end());
  b.assign(3, 5.0f);
  EXPECT_EQ(a.copy(), values);
  EXPECT_EQ(b.copy(), (std::vector<float>{5, 5, 5}));
  EXPECT_FALSE(a.empty());
  a.resize(0);
  EXPECT_TRUE(a.empty());
}

}  // namespace
}  // namespace fedep
