#include "app/reproduce/plan_deal.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>

#include <gtest/gtest.h>

#include "fedep/message/error.h"
#include "fedep/message/test_folder.h"
#include "fedep/sim/ranks/test_thread_ranks.h"

namespace fedep {
namespace {

std::vector<Plan> plans_of(const std::filesystem::path& folder, const std::vector<int>& rounds) {
  std::vector<Plan> plans;
  for (std::size_t i = 0; i < rounds.size(); ++i) {
    Plan& plan = plans.emplace_back();
    plan.row = std::to_string(i);
    plan.out = folder / plan.row;
    plan.recipe.phases.push_back({.algorithm = "fed_avg", .rounds = rounds[i]});
  }
  return plans;
}

class PlanDeals : public testing::Test {
 protected:
  TemporaryFolder folder_;
};

TEST_F(PlanDeals, AllRunsAreOneProcesssThatIsAlone) {
  const PlanDeal deal(nullptr, 1, plans_of(folder_.path(), {3, 4, 5}));
  for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(deal.is_mine(i));
  EXPECT_EQ(deal.group(), nullptr);
  EXPECT_TRUE(deal.leads() && deal.speaks());
  EXPECT_TRUE(deal.wait_for_all(false));
  EXPECT_FALSE(deal.wait_for_all(true));
}

TEST_F(PlanDeals, EveryRunHasOneGroupWhichPlaysItWhole) {
  const std::vector<Plan> plans = plans_of(folder_.path(), {9, 1, 4, 5, 1, 1, 6});
  for (const std::size_t per_run : {1u, 2u, 3u}) {
    std::mutex mutex;
    std::vector<std::multiset<std::size_t>> players(plans.size());
    std::vector<std::int64_t> work(5, 0);
    play_ranks(5, [&](Ranks& ranks) {
      const PlanDeal deal(&ranks, per_run, plans);
      EXPECT_EQ(deal.speaks(), ranks.rank() == 0);
      EXPECT_EQ(deal.leads(), ranks.rank() % per_run == 0);
      EXPECT_EQ(deal.group() == nullptr, per_run == 1);
      const std::lock_guard lock(mutex);
      for (std::size_t i = 0; i < plans.size(); ++i) {
        if (!deal.is_mine(i)) continue;
        players[i].insert(ranks.rank());
        work[ranks.rank()] += plans[i].recipe.phases[0].rounds;
      }
    });
    for (const auto& ranks : players) {
      // The last group may have fewer.
      const std::size_t first = *ranks.begin();
      EXPECT_EQ(first % per_run, 0u);
      EXPECT_EQ(ranks.size(), std::min<std::size_t>(per_run, 5 - first));
    }
    if (per_run == 1) {
      EXPECT_EQ(std::ranges::max(work), 9);  // the longest alone
    }
  }
}

TEST_F(PlanDeals, AGroupTalksAmongItself) {
  const std::vector<Plan> plans = plans_of(folder_.path(), {1, 1});
  std::filesystem::create_directory(folder_.path() / "1");
  std::ofstream(folder_.path() / "1" / "recipe.toml") << "";
  play_ranks(4, [&](Ranks& ranks) {
    const PlanDeal deal(&ranks, 2, plans);
    std::vector<std::int64_t> sum{std::int64_t(ranks.rank())};
    deal.group()->sum(sum);
    EXPECT_EQ(sum[0], ranks.rank() < 2 ? 1 : 5);
    EXPECT_EQ(deal.players(0), "ranks 0 to 1");
    EXPECT_EQ(deal.players(1), "ranks 2 to 3");
    const std::size_t mine = ranks.rank() / 2;
    EXPECT_TRUE(deal.is_mine(mine));
    EXPECT_EQ(deal.find(plans[mine]).begun, mine == 1);
    EXPECT_FALSE(deal.find(plans[mine]).finished);
  });
}

TEST_F(PlanDeals, OneThatStopsIsHeardInTheEnd) {
  const std::vector<Plan> plans = plans_of(folder_.path(), {1, 1, 1});
  play_ranks(3, [&](Ranks& ranks) {
    const PlanDeal deal(&ranks, 1, plans);
    EXPECT_TRUE(deal.wait_for_all(false));
    EXPECT_FALSE(deal.wait_for_all(ranks.rank() == 2));
  });
}

TEST_F(PlanDeals, RefuseOtherPlansAndGroupsThatAreTooLarge) {
  EXPECT_THROW(PlanDeal(nullptr, 2, {}), InputError);
  play_ranks(2, [&](Ranks& ranks) {
    EXPECT_THROW(PlanDeal(&ranks, 3, {}), InputError);
    const std::vector<Plan> plans = plans_of(folder_.path(), {1 + int(ranks.rank())});
    EXPECT_THROW(PlanDeal(&ranks, 1, plans), InputError);
  });
}

}  // namespace
}  // namespace fedep
