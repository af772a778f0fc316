#include "fedep/message/reach.h"

#include <vector>

#include <gtest/gtest.h>

#include "fedep/message/error.h"
#include "fedep/random/stream.h"

namespace fedep {
namespace {

using V = HostVector<float>;

std::vector<Range> random_ranges(Stream& stream, std::size_t size) {
  std::vector<Range> ranges;
  for (std::size_t at = stream.below(20); at < size;) {
    const std::size_t end = std::min<std::size_t>(size, at + 1 + stream.below(30));
    ranges.push_back({at, end});
    at = end + stream.below(20);
  }
  return ranges;
}

V random_numbers(Stream& stream, std::size_t size) {
  V out(size);
  for (float& x : out.span()) x = stream.below(4) == 0 ? 0.0f : float(stream.normal());
  return out;
}

TEST(Reach, TakesPartsOutAndPutsThemBack) {
  for (std::uint32_t trial = 0; trial < 300; ++trial) {
    Stream stream({.seed = 4, .step = trial});
    const std::size_t size = 1 + stream.below(400);
    const Reach reach(random_ranges(stream, size), size);
    const bool diagonal = trial % 2 == 0;
    V eta = random_numbers(stream, reach.size());
    const Message part = diagonal ? Message(eta, random_numbers(stream, reach.size()))
                                  : Message(eta, float(trial % 3));
    const SparseMessage whole = reach.scatter(part);
    EXPECT_EQ(whole, without_zeros(expanded(whole))) << trial;
    EXPECT_EQ(reach.gather(whole), part) << trial;
    EXPECT_EQ(reach.gather(expanded(whole)), part) << trial;
    EXPECT_TRUE(reach.has_all_of(whole)) << trial;
    for (std::size_t i = 0; i < reach.size(); ++i) {
      EXPECT_EQ(expanded(whole).eta()[reach.place(i)], part.eta()[i]);
    }
  }
}

TEST(Reach, KnowsWhatIsBeyondIt) {
  const Reach reach({{2, 4}, {20, 30}}, 50);
  V eta(50), lambda(50);
  eta[3] = 1;
  lambda[29] = 2;
  EXPECT_TRUE(reach.has_all_of(without_zeros(Message(eta, lambda))));
  lambda[30] = 1;
  EXPECT_FALSE(reach.has_all_of(without_zeros(Message(eta, lambda))));
  lambda[30] = 0;
  eta[0] = 1;
  EXPECT_FALSE(reach.has_all_of(without_zeros(Message(eta, lambda))));
  EXPECT_FALSE(reach.has_all_of(without_zeros(Message(V(51), V(51)))));
}

TEST(Reach, IsAPartIfSomethingIsLeft) {
  EXPECT_FALSE(Reach().is_part());
  EXPECT_FALSE(Reach({{0, 5}}, 5).is_part());
  EXPECT_TRUE(Reach({{0, 4}}, 5).is_part());
}

TEST(Reach, RefusesRangesThatDoNotAscendWithinTheVector) {
  EXPECT_THROW(Reach({{3, 3}}, 5), InputError);
  EXPECT_THROW(Reach({{3, 6}}, 5), InputError);
  EXPECT_THROW(Reach({{2, 4}, {3, 5}}, 5), InputError);
  EXPECT_THROW(Reach({{3, 4}, {0, 1}}, 5), InputError);
}

}  // namespace
}  // namespace fedep
