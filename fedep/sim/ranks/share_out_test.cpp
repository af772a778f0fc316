#include "fedep/sim/ranks/share_out.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "fedep/message/error.h"
#include "fedep/random/stream.h"
#include "fedep/sim/ranks/test_femnist_sizes.h"

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

// When the last of a rank's threads is done, which take the longest visits first.
std::int64_t last_done(const std::vector<VisitLoad>& visits, const std::vector<std::size_t>& ranks,
                       const Workforce& workforce) {
  std::int64_t last = 0;
  for (std::size_t rank = 0; rank < workforce.ranks; ++rank) {
    std::vector<std::int64_t> busy(workforce.threads, 0);
    for (const std::size_t i : longest_first(visits)) {
      if (ranks[i] == rank) *std::ranges::min_element(busy) += visits[i].cost;
    }
    last = std::max(last, std::ranges::max(busy));
  }
  return last;
}

// What nobody can beat: a worker has the mean or more, and of the n k + 1 longest visits n workers leave
// one of them k + 1 or more.
std::int64_t least_possible(const std::vector<VisitLoad>& visits, std::size_t workers) {
  std::vector<std::int64_t> costs;
  for (const std::size_t i : longest_first(visits)) costs.push_back(visits[i].cost);
  const std::int64_t all = std::accumulate(costs.begin(), costs.end(), std::int64_t(0));
  std::int64_t least = (all + std::int64_t(workers) - 1) / std::int64_t(workers);
  for (std::size_t last = 0, most = 1; last < costs.size(); last += workers, ++most) {
    const auto end = costs.begin() + std::ptrdiff_t(last) + 1;
    least = std::max(least, std::accumulate(end - std::ptrdiff_t(most), end, std::int64_t(0)));
  }
  return least;
}

// Whether visits (the longest first) can be shared out so that nobody has more to do than `most`: every
// way is tried, those alike once.
class Packing {
 public:
  Packing(std::vector<std::int64_t> costs, std::size_t workers, std::int64_t most)
      : costs_(std::move(costs)), most_(most), busy_(workers, 0) {}

  bool exists(std::size_t i = 0) {
    if (i == costs_.size()) return true;
    std::vector<std::int64_t> state = busy_;
    std::ranges::sort(state);
    if (!seen_.insert({i, std::move(state)}).second) return false;
    std::set<std::int64_t> tried;
    for (std::int64_t& work : busy_) {
      if (work + costs_[i] > most_ || !tried.insert(work).second) continue;
      work += costs_[i];
      if (exists(i + 1)) return true;
      work -= costs_[i];
    }
    return false;
  }

 private:
  std::vector<std::int64_t> costs_;
  std::int64_t most_;
  std::vector<std::int64_t> busy_;
  std::set<std::pair<std::size_t, std::vector<std::int64_t>>> seen_;
};

// The least that the busiest worker can have to do, at most `found`.
std::int64_t best_possible(const std::vector<VisitLoad>& visits, std::size_t workers,
                           std::int64_t found) {
  std::vector<std::int64_t> costs;
  for (const std::size_t i : longest_first(visits)) costs.push_back(visits[i].cost);
  std::int64_t least = least_possible(visits, workers);
  while (least < found) {
    const std::int64_t middle = (least + found) / 2;
    if (Packing(costs, workers, middle).exists()) {
      found = middle;
    } else {
      least = middle + 1;
    }
  }
  return found;
}

// The best there is where cohorts are small; of large ones what nobody could beat.
TEST(ShareOut, IsWithinATenthOfTheBestOnFemnistsWriters) {
  double worst = 0;
  for (const std::size_t asked : {20u, 100u, 200u}) {
    for (const Workforce& workforce : std::vector<Workforce>{
             {2, 1}, {3, 1}, {4, 1}, {7, 1}, {8, 1}, {16, 1}, {2, 2}, {4, 2}, {3, 4}}) {
      const std::size_t workers = workforce.ranks * workforce.threads;
      for (std::uint32_t trial = 0; trial < 8; ++trial) {
        Stream stream({.seed = 4, .round = std::uint32_t(asked), .step = trial});
        std::vector<VisitLoad> visits;
        for (const std::size_t k :
             sample_without_replacement(stream, kFemnistSizes.size(), asked)) {
          // As the recipes have it: 20 epochs in minibatches of 20.
          VisitLoad visit{.cost = 1 + 20 * (kFemnistSizes[k] / 20), .home = std::nullopt};
          if (trial % 2 == 1 && stream.below(2) == 1) visit.home = stream.below(workforce.ranks);
          visits.push_back(visit);
        }
        const std::int64_t ours = last_done(visits, share_out(visits, workforce), workforce);
        const std::int64_t best =
            asked == 20 ? best_possible(visits, workers, ours) : least_possible(visits, workers);
        worst = std::max(worst, double(ours) / double(best));
        EXPECT_LE(10 * ours, 11 * best) << asked << " on " << workforce.ranks << " x "
                                        << workforce.threads << ", trial " << trial;
      }
    }
  }
  RecordProperty("worst", std::to_string(worst));
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
