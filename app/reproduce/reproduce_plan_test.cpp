#include "app/reproduce/reproduce_plan.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "fedep/data/test_files.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

std::string recipe(const std::string& row, int burn_in, const std::string& more = "") {
  std::string text = fmt::format(
      "table = \"trial\"\nrow = \"{}\"\n[data]\nname = \"toy\"\n{}[[phase]]\nalgorithm = "
      "\"fed_avg\"\nrounds = {}\n",
      row, more, burn_in);
  if (row != "fed_avg") {
    text += "[[phase]]\nalgorithm = \"fed_ep\"\nrounds = 5\n[phase.inference]\nname = \"exact\"\n";
  }
  return text;
}

class ReproducePlan : public testing::Test {
 protected:
  ReproducePlan() {
    folder_.write("avg.toml", recipe("fed_avg", 9));
    folder_.write("ep.toml", recipe("fed_ep", 4));
    folder_.write("ep_a.toml", recipe("fed_ep_a", 4));
    folder_.write("pa.toml", recipe("fed_pa", 3));
    folder_.write("wide.toml", recipe("wide", 4, "clients = 40\n"));
  }
  std::vector<Plan> plans(PlanOptions options) const {
    options.table = "trial";
    options.recipes = folder_.path().string();
    return plan_of(options);
  }

  TemporaryFolder folder_;
};

TEST_F(ReproducePlan, StatesAreKeptWhereTheFirstPhaseOfARowOnTheSamePathEnds) {
  const std::vector<std::int64_t> both{4, 3}, own{4};
  for (const Plan& plan : plans({})) {
    EXPECT_EQ(plan.keep_after, plan.recipe.row == "wide" ? own : both) << plan.recipe.row;
  }
  // Also for rows that somebody else plays.
  const std::vector<Plan> one = plans({.table = "", .rows = {"fed_avg"}, .seeds = {7}});
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].keep_after, both);
}

TEST_F(ReproducePlan, EachRowAndSeedIsARunOfItsOwn) {
  const std::vector<Plan> some =
      plans({.table = "", .rows = {"fed_ep", "wide"}, .seeds = {1, 2}, .rounds = 6});
  ASSERT_EQ(some.size(), 4u);
  EXPECT_EQ(some[1].out, std::filesystem::path("run/trial/fed_ep-seed2-6rounds"));
  EXPECT_EQ(some[1].recipe.seed, 2u);
  EXPECT_TRUE(some[1].shortened);
  EXPECT_EQ(some[3].recipe.row, "wide");
  EXPECT_THROW(plans({.table = "", .rows = {"fed_eb"}}), InputError);
}

TEST_F(ReproducePlan, RowsAreFoundInFoldersBelow) {
  folder_.write("trial/base.toml", "table = \"trial\"\n[data]\nname = \"toy\"\n");
  folder_.write("trial/deep/short.toml",
                "extends = \"../base.toml\"\nrow = \"short\"\n[[phase]]\nalgorithm = "
                "\"fed_avg\"\nrounds = 2\n");
  const std::vector<Plan> found = plans({.table = "", .rows = {"short"}});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].recipe.phases[0].rounds, 2);
}

TEST_F(ReproducePlan, TheRecipesOfRunsBelowAreNoRows) {
  folder_.write("run/trial/fed_ep-seed1/recipe.toml", recipe("fed_ep", 4));
  EXPECT_EQ(plans({}).size(), 5u);
  folder_.write("recipe.toml", recipe("fed_ep", 4));
  EXPECT_THROW(plans({}), InputError);
}

// Table 8's row with Table 2's settings is Table 2's run; others are their own.
TEST(ReproducePlanOfSharedRuns, RowsWithTheSettingsOfAnotherTablesRowAreItsRun) {
  const TemporaryFolder folder;
  const auto write = [&](const std::string& file, const std::string& table, const std::string& row,
                         double lr, const std::string& evaluate) {
    folder.write(file,
                 fmt::format("table = \"{}\"\nrow = \"{}\"\nseed = 3\n[data]\nname = \"toy\"\n"
                             "[server]\noptimizer = {{ name = \"sgd\", lr = {} }}\n"
                             "[[phase]]\nalgorithm = \"fed_avg\"\nrounds = 4\n"
                             "[evaluate]\n{}\n[checkpoint]\nevery = {}\n",
                             table, row, lr, evaluate, table == "table2" ? 2 : 3));
  };
  write("a.toml", "table2", "fed_avg", 0.5, "every = 1\nsamples = 10");
  write("b.toml", "table8", "same", 0.5, "every = 1");
  write("c.toml", "table8", "other", 0.25, "every = 1");
  write("d.toml", "table8", "scored_less", 0.5, "every = 2");
  const auto plans = [&](const std::string& out) {
    return plan_of(
        {.table = "table8", .seeds = {7}, .recipes = folder.path().string(), .out = out});
  };
  const std::vector<Plan> found = plans("");
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].row, "same");
  EXPECT_EQ(found[0].recipe.row, "fed_avg");
  EXPECT_EQ(found[0].recipe.seed, 7u);
  EXPECT_EQ(found[0].out, std::filesystem::path("run/table2/fed_avg-seed7"));
  EXPECT_EQ(found[1].out, std::filesystem::path("run/table8/other-seed7"));
  EXPECT_EQ(found[2].out, std::filesystem::path("run/table8/scored_less-seed7"));
  EXPECT_EQ(plans("here")[0].out, std::filesystem::path("here/fed_avg-seed7"));
}

}  // namespace
}  // namespace fedep
