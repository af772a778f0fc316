#include "fedep/data/holdout.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "fedep/message/error.h"

namespace fedep {
namespace {

std::size_t count(const std::vector<bool>& held) {
  return std::size_t(std::count(held.begin(), held.end(), true));
}

TEST(Holdout, AFifthIsAFifth) {
  for (const std::size_t n : {5u, 10u, 15u, 100u, 1000u}) {
    EXPECT_EQ(count(held_out("a", n, 0.2)), n / 5);
  }
}

TEST(Holdout, DependsOnTheClientAndOnNothingElse) {
  EXPECT_EQ(held_out("a", 100, 0.2), held_out("a", 100, 0.2));
  EXPECT_NE(held_out("a", 100, 0.2), held_out("b", 100, 0.2));
}

TEST(Holdout, EveryExampleIsHeldOutOfSomeClientAsOftenAsAnother) {
  std::vector<double> times(10, 0);
  for (int k = 0; k < 2000; ++k) {
    const std::vector<bool> held = held_out("client " + std::to_string(k), 10, 0.2);
    for (std::size_t i = 0; i < 10; ++i) times[i] += held[i];
  }
  // Binomial(2000, 0.2): 400 ± 18.
  for (const double n : times) EXPECT_NEAR(n, 400, 90);
}

TEST(Holdout, OneExampleAlwaysStaysInTraining) {
  EXPECT_EQ(held_out("a", 0, 0.2).size(), 0u);
  EXPECT_EQ(count(held_out("a", 1, 0.9)), 0u);
  EXPECT_EQ(count(held_out("a", 3, 1.0)), 2u);
  EXPECT_EQ(count(held_out("a", 10, 0.0)), 0u);
  EXPECT_THROW(held_out("a", 10, -0.1), InputError);
  EXPECT_THROW(held_out("a", 10, 1.5), InputError);
}

TEST(Holdout, AGroupIsHeldOutTogether) {
  const auto groups =
      numbered_groups(std::vector<std::string>{"p", "q", "p", "r", "s", "t", "q", "u", "v", "w"});
  for (int k = 0; k < 50; ++k) {
    const std::vector<bool> held = held_out("client " + std::to_string(k), groups, 0.3);
    EXPECT_EQ(held[0], held[2]);
    EXPECT_EQ(held[1], held[6]);
    EXPECT_EQ(count(held), 3u);
  }
}

TEST(Holdout, AGroupTooLargeStaysInTraining) {
  const auto groups = numbered_groups(std::vector<std::string>(10, "one patient"));
  EXPECT_EQ(count(held_out("a", groups, 0.2)), 0u);
}

TEST(Holdout, WhoHasNoGroupIsOnItsOwn) {
  const auto groups = numbered_groups(std::vector<std::string>{"p", "", "q", "", "p"});
  EXPECT_EQ(groups, (std::vector<std::uint32_t>{0, 1, 2, 3, 0}));
}

}  // namespace
}  // namespace fedep
