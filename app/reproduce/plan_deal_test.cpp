#include "app/reproduce/plan_deal.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "app/output.h"
#include "fedep/config/read_recipe.h"
#include "fedep/message/error.h"
#include "fedep/message/test_folder.h"
#include "fedep/sim/ranks/test_thread_ranks.h"

namespace fedep {
namespace {

const std::string kToy = "[data]\nname = \"toy\"\n[[phase]]\nalgorithm = \"fed_avg\"\nrounds = ";

std::vector<Plan> plans_of(const std::filesystem::path& folder, const std::vector<int>& rounds) {
  std::vector<Plan> plans;
  for (std::size_t i = 0; i < rounds.size(); ++i) {
    Plan& plan = plans.emplace_back();
    plan.row = std::to_string(i);
    plan.out = folder / plan.row;
    plan.recipe = parse_recipe(kToy + std::to_string(rounds[i]));
  }
  return plans;
}

class PlanDeals : public testing::Test {
 protected:
  TemporaryFolder folder_;
};

TEST_F(PlanDeals, AllRunsAreOneProcesssThatIsAlone) {
  const PlanDeal deal({}, 1, plans_of(folder_.path(), {3, 4, 5}));
  for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(deal.is_mine(i));
  EXPECT_EQ(deal.group(), nullptr);
  EXPECT_TRUE(deal.leads() && deal.speaks());
  EXPECT_EQ(deal.wait_for_all(false), 0);
  EXPECT_EQ(deal.wait_for_all(true), 130);
}

TEST_F(PlanDeals, EveryRunHasOneGroupWhichPlaysItWhole) {
  const std::vector<Plan> plans = plans_of(folder_.path(), {9, 1, 4, 5, 1, 1, 6});
  for (const std::size_t per_run : {1u, 2u, 3u}) {
    std::mutex mutex;
    std::vector<std::multiset<std::size_t>> players(plans.size());
    std::vector<std::int64_t> work(5, 0);
    play_ranks(5, [&](Ranks& ranks) {
      const PlanDeal deal({.ranks = &ranks}, per_run, plans);
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
    const PlanDeal deal({.ranks = &ranks}, 2, plans);
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
    const PlanDeal deal({.ranks = &ranks}, 1, plans);
    EXPECT_EQ(deal.wait_for_all(false), 0);
    EXPECT_EQ(deal.wait_for_all(ranks.rank() == 2), 130);
  });
}

TEST_F(PlanDeals, ARunThatFailsLeavesTheOthersAlone) {
  const std::vector<Plan> plans = plans_of(folder_.path(), {1, 1, 1, 1});
  std::mutex mutex;  // guards played, and what is printed
  std::set<std::size_t> played;
  testing::internal::CaptureStderr();
  play_ranks(2, [&](Ranks& ranks) {
    PlanDeal deal({.ranks = &ranks}, 1, plans);
    for (std::size_t i = 0; i < plans.size(); ++i) {
      if (!deal.is_mine(i)) continue;
      EXPECT_TRUE(deal.play(i, [&] {
        const std::lock_guard lock(mutex);
        if (!played.insert(i).second || i == 2) throw InputError("no\nluck");
        return true;
      }));
    }
    EXPECT_EQ(deal.wait_for_all(false), ranks.rank() == 0 ? 2 : 0);
    EXPECT_EQ(deal.wait_for_all(ranks.rank() == 1), 130);
  });
  EXPECT_EQ(played.size(), 4u);
  const std::string told = "fedep: rank 0 on here: 2, seed 1: no luck";
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            told + "; other runs are left alone\n" + told + "\n" + told + "\n");
}

TEST_F(PlanDeals, ARunThatFailsIsToldAtOnceByItsOwnRank) {
  const std::vector<Plan> plans = plans_of(folder_.path(), {1, 1});
  std::mutex mutex;  // guards what is printed
  testing::internal::CaptureStderr();
  play_ranks(2, [&](Ranks& ranks) {
    PlanDeal deal({.ranks = &ranks}, 1, plans);
    const std::lock_guard lock(mutex);
    keep_quiet();  // as every rank but the first
    for (std::size_t i = 0; i < plans.size(); ++i) {
      if (deal.is_mine(i) && ranks.rank() == 1) {
        deal.play(i, []() -> bool { throw RunError("no luck"); });
      }
    }
    keep_quiet(false);
  });
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(told.starts_with("fedep: rank 1 on here: ")) << told;
  EXPECT_TRUE(told.ends_with(", seed 1: no luck; other runs are left alone\n")) << told;
}

TEST_F(PlanDeals, ARunThatFailsForSomeOfAGroupEndsAll) {
  const std::vector<Plan> plans = plans_of(folder_.path(), {1});
  PlanDeal alone({}, 1, plans);
  EXPECT_THROW(alone.play(0, []() -> bool { throw RunError("no luck"); }), RunError);
  play_ranks(2, [&](Ranks& ranks) {
    PlanDeal deal({.ranks = &ranks}, 2, plans);
    EXPECT_THROW(deal.play(0, []() -> bool { throw RunError("no luck"); }), RunError);
  });
}

TEST_F(PlanDeals, RefuseOtherPlansAndGroupsThatAreTooLarge) {
  EXPECT_THROW(PlanDeal({}, 2, {}), InputError);
  play_ranks(2, [&](Ranks& ranks) {
    EXPECT_THROW(PlanDeal({.ranks = &ranks}, 3, {}), InputError);
    const std::vector<Plan> plans = plans_of(folder_.path(), {1 + int(ranks.rank())});
    EXPECT_THROW(PlanDeal({.ranks = &ranks}, 1, plans), InputError);
  });
}

// Of two data sets the second differs; what is not played is not opened.
TEST_F(PlanDeals, RefuseDataThatAreNotTheSame) {
  const std::string table = "site,x,y\na,1,0\na,2,1\nb,3,0\nb,4,1\n";
  std::vector<Plan> plans = plans_of(folder_.path(), {1, 1});
  plans[1].recipe = parse_recipe(
      "[data]\nname = \"tabular\"\npath = \"t.csv\"\nclient_column = \"site\"\n"
      "label_column = \"y\"\n[server]\nclients_per_round = 2\n[[phase]]\nalgorithm = "
      "\"fed_avg\"\nrounds = 1\n");
  for (const std::string name : {"here", "there"}) {
    std::filesystem::create_directory(folder_.path() / name);
    std::ofstream(folder_.path() / name / "t.csv") << table << (name == "here" ? "" : "b,5,1\n");
  }
  play_ranks(2, [&](Ranks& ranks) {
    RunRecipeOptions how{.data = folder_.path() / "here", .ranks = &ranks};
    EXPECT_NO_THROW(PlanDeal(how, 1, plans));
    if (ranks.rank() == 1) how.data = folder_.path() / "there";
    const std::string why = message_of<InputError>([&] { PlanDeal(how, 1, plans); });
    EXPECT_TRUE(why.starts_with("data must be the same on all ranks, but on rank 1")) << why;
    EXPECT_NO_THROW(PlanDeal(how, 1, std::span(plans).first(1)));
  });
}

}  // namespace
}  // namespace fedep
