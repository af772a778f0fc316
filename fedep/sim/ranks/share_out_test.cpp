#include "fedep/sim/ranks/share_out.h"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "fedep/message/error.h"
#include "fedep/random/stream.h"

namespace fedep {
namespace {

std::vector<VisitLoad> loads_of(const std::vector<std::int64_t>& costs) {
  std::vector<VisitLoad> loads;
  for (const std::int64_t cost : costs) loads.push_back({.cost = cost, .home = std::nullopt});
  return loads;
}

std::vector<std::int64_t> work_of(const std::vector<VisitLoad>& visits,
                                  const std::vector<std::size_t>& ranks, std::size_t size) {
  std::vector<std::int64_t> work(size, 0);
  for (std::size_t i = 0; i < visits.size(); ++i) work[ranks[i]] += visits[i].cost;
  return work;
}

std::int64_t longest(const std::vector<std::int64_t>& work) { return std::ranges::max(work); }

// The best of all ways to share few visits out.
std::int64_t best_of_all(const std::vector<VisitLoad>& visits, std::size_t ranks) {
  std::vector<std::int64_t> work(ranks, 0);
  std::int64_t best = std::numeric_limits<std::int64_t>::max();
  const auto place = [&](const auto& self, std::size_t i) -> void {
    if (longest(work) >= best) return;
    if (i == visits.size()) {
      best = longest(work);
      return;
    }
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      work[rank] += visits[i].cost;
      self(self, i + 1);
      work[rank] -= visits[i].cost;
    }
  };
  place(place, 0);
  return best;
}

TEST(ShareOut, GivesEveryVisitToOneRankAndTheLongestFirst) {
  const auto visits = loads_of({1, 7, 3, 7, 2});
  EXPECT_EQ(longest_first(visits), (std::vector<std::size_t>{1, 3, 2, 4, 0}));
  // 7 | 7, 3 | -, then 2 to the second, 1 to the second again.
  EXPECT_EQ(share_out(visits, {.ranks = 2}), (std::vector<std::size_t>{1, 0, 0, 1, 1}));
  EXPECT_EQ(share_out(visits, {.ranks = 1}), (std::vector<std::size_t>(5, 0)));
  EXPECT_TRUE(share_out({}, {.ranks = 3}).empty());
}

// Graham, 1969: at most 4/3 of the best; factors' homes may cost a fiftieth of the mean more.
TEST(ShareOut, IsAtMostAThirdWorseThanTheBestOfAll) {
  for (std::uint32_t trial = 0; trial < 60; ++trial) {
    std::vector<float> drawn(9);
    fill_uniform({.seed = 3, .step = trial}, drawn);
    std::vector<VisitLoad> visits;
    for (const float x : drawn) visits.push_back({1 + std::int64_t(1000 * x * x * x), trial % 3});
    const std::int64_t best = best_of_all(visits, 3);
    std::int64_t all = 0;
    for (const VisitLoad& visit : visits) all += visit.cost;
    const auto work = work_of(visits, share_out(visits, {.ranks = 3}), 3);
    EXPECT_LE(3 * longest(work), 4 * best + 3 * (all / 150 + 1)) << trial;
  }
}

TEST(ShareOut, LeavesFactorsWhereTheyAreWhereThatCostsNothing) {
  std::vector<VisitLoad> visits = loads_of({5, 5, 5, 5});
  for (std::size_t i = 0; i < visits.size(); ++i) visits[i].home = i / 2;  // 0 0 1 1
  EXPECT_EQ(share_out(visits, {.ranks = 2}), (std::vector<std::size_t>{0, 0, 1, 1}));
  // But does not let one rank play for all.
  for (VisitLoad& visit : visits) visit.home = 1;
  EXPECT_EQ(work_of(visits, share_out(visits, {.ranks = 2}), 2),
            (std::vector<std::int64_t>{10, 10}));
}

TEST(ShareOut, CountsTheThreadsOfARank) {
  // One long visit and two threads a rank: the short ones go beside it too.
  const auto visits = loads_of({9, 3, 3, 3});
  const auto ranks = share_out(visits, {.ranks = 2, .threads = 2});
  EXPECT_EQ(ranks, (std::vector<std::size_t>{0, 1, 0, 1}));
}

TEST(ShareOut, NeedsSomebody) {
  EXPECT_THROW(share_out({}, {.ranks = 0}), InputError);
  EXPECT_THROW(share_out({}, {.ranks = 1, .threads = 0}), InputError);
}

}  // namespace
}  // namespace fedep
