// What ranks compare before they begin, and that a rank which is another one is found.

#include "fedep/sim/ranks/same_ranks.h"

#include <algorithm>
#include <cfenv>
#include <string>

#include <gtest/gtest.h>

#include "fedep/message/error.h"
#include "fedep/sim/ranks/test_thread_ranks.h"
#include "fedep/sim/ranks/test_uneven_run.h"

namespace fedep {
namespace {

std::string refusal(Ranks& ranks, const std::vector<Fact>& facts, bool mixed) {
  try {
    compare_ranks(ranks, facts, mixed);
    return "";
  } catch (const InputError& error) {
    return error.what();
  }
}

TEST(CompareRanks, RefusesWhatDiffersAndSaysWhere) {
  play_ranks(3, [&](Ranks& ranks) {
    const bool other = ranks.rank() == 2;
    EXPECT_EQ(refusal(ranks, {{"recipe", "a = 1\nb = 2\n"}}, false), "");
    EXPECT_EQ(
        refusal(ranks, {{"data", "1"}, {"recipe", other ? "a = 1\nb = 3\n" : "a = 1\nb = 2\n"}},
                true),
        "recipe must be the same on all ranks, but on rank 2 (here) is \"b = 3\", and on rank 0 "
        "\"b = 2\"");
    const std::vector<Fact> cpus{{"CPU model", other ? "old" : "new", true}};
    EXPECT_NE(refusal(ranks, cpus, false).find("is \"old\", and on rank 0 \"new\"; --mixed-cpus"),
              std::string::npos);
    EXPECT_EQ(compare_ranks(ranks, cpus, true).size(), 1u);
  });
}

std::uint64_t visit_hash(const Recipe& recipe) {
  const auto task = make_task(recipe, "");
  const auto phases =
      plan_phases(recipe, [&](std::string_view name) { return task->family_of(name); });
  return first_visit_hash(recipe, phases, *task);
}

TEST(CompareRanks, AskForAVisitThatDependsOnItsArithmetic) {
  Recipe recipe = uneven_recipe("fed_ep", "laplace", 64);
  const std::uint64_t first = visit_hash(recipe);
  EXPECT_EQ(visit_hash(recipe), first);
  recipe.client.optimizer.lr *= 1.0000002;
  EXPECT_NE(visit_hash(recipe), first);
}

// A client that has no batch computes nothing.
TEST(CompareRanks, AskAClientThatMakesSteps) {
  Recipe recipe = uneven_recipe("fed_ep", "laplace", 64);
  recipe.client.remainder = Remainder::drop;
  const Population population = make_task(recipe, "")->population();
  std::vector<int> sizes;
  for (std::size_t k = 0; k < population.size(); ++k) {
    sizes.push_back(int(population[k].examples));
  }
  std::ranges::sort(sizes);
  ASSERT_LT(sizes.front(), sizes.back());
  const auto depends_on_its_steps = [&](int batch) {
    recipe.client.batch = batch;
    Recipe other = recipe;
    other.client.optimizer.lr *= 1.5;
    return visit_hash(other) != visit_hash(recipe);
  };
  EXPECT_TRUE(depends_on_its_steps(sizes[sizes.size() / 2]));
  EXPECT_TRUE(depends_on_its_steps(sizes.back()));
  // Laplace shuffles two epochs' examples together; of three there are none.
  EXPECT_TRUE(depends_on_its_steps(2 * sizes.back()));
  EXPECT_FALSE(depends_on_its_steps(3 * sizes.back()));
}

// A burn-in's visits say nothing of the method that follows it.
TEST(CompareRanks, AskForAVisitByEveryPhasesMethod) {
  const Recipe recipe = uneven_recipe("fed_ep", "laplace", 64);
  Recipe other = recipe;
  other.phases.at(1).inference->epochs += 1;  // that collect squared gradients
  EXPECT_NE(visit_hash(other), visit_hash(recipe));
}

std::vector<Fact> own_arithmetic() {
  const Recipe recipe = uneven_recipe("fed_ep", "laplace", 64);
  const auto task = make_task(recipe, "");
  return arithmetic_of(
      recipe, plan_phases(recipe, [&](std::string_view name) { return task->family_of(name); }),
      *task);
}

TEST(CompareRanks, LookAtAllThatBitsDependOn) {
  const std::vector<Fact> facts = own_arithmetic();
  std::vector<std::string> names;
  for (const Fact& fact : facts) {
    names.push_back(fact.name);
    EXPECT_NE(fact.value, "") << fact.name;
    EXPECT_TRUE(fact.arithmetic) << fact.name;
  }
  EXPECT_EQ(names,
            (std::vector<std::string>{"CPU model", "BLAS kernel", "program", "a first visit"}));
}

// A processor that rounds in another way has the same name, and plays the same program.
TEST(CompareRanks, FindArithmeticThatOnlyAVisitShows) {
  play_ranks(3, [&](Ranks& ranks) {
    const bool other = ranks.rank() == 1;
    const std::vector<Fact> right = own_arithmetic();
    if (other) std::fesetround(FE_UPWARD);
    const std::vector<Fact> mine = own_arithmetic();
    std::fesetround(FE_TONEAREST);
    for (std::size_t i = 0; i < right.size(); ++i) {
      const bool differs = other && right[i].name == "a first visit";
      EXPECT_EQ(mine[i].value != right[i].value, differs) << right[i].name;
    }
    EXPECT_EQ(refusal(ranks, right, false), "");
    EXPECT_NE(refusal(ranks, mine, false)
                  .find("a first visit must be the same on all ranks, but on rank 1"),
              std::string::npos);
    EXPECT_EQ(compare_ranks(ranks, mine, true).size(), 1u);
  });
}

}  // namespace
}  // namespace fedep
