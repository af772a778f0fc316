#include "fedep/page/report/recipe_diff.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fedep/config/read_recipe.h"
#include "fedep/config/resolve.h"
#include "fedep/page/test_runs.h"

namespace fedep {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Recipe recipe(const std::vector<std::string>& overrides = {}) {
  return parse_recipe(kTestRecipe, "recipe", overrides);
}

// Every flat key is a name that --set takes, so setting all to what they are changes nothing.
TEST(FlatSettings, AreTheNamesThatOverridesTake) {
  const Recipe original = recipe({"client.optimizer.lr=0.125", "data.path=a b = c"});
  std::vector<std::string> overrides;
  for (const auto& [key, value] : flat_settings(original)) {
    overrides.push_back(key + "=" + value);
  }
  EXPECT_GT(overrides.size(), 80u);
  EXPECT_EQ(parse_recipe(kTestRecipe, "recipe", overrides), filled_in(original));
}

TEST(RecipeDiffs, HoldOnlyWhatDiffers) {
  const std::vector<Recipe> recipes{recipe(), recipe({"client.epochs=3", "seed=9"}), recipe()};
  const RecipeDiff diff = recipe_diff(recipes);
  EXPECT_THAT(diff.keys, ElementsAre("seed", "client.epochs"));
  EXPECT_THAT(diff.values, ElementsAre(ElementsAre("7", "9", "7"), ElementsAre("1", "3", "1")));
  EXPECT_THAT(recipe_diff(std::vector{recipe(), recipe()}).keys, IsEmpty());
  EXPECT_THAT(recipe_diff({}).keys, IsEmpty());
}

TEST(RecipeDiffs, ShowPhasesThatOnlyOneRecipeHas) {
  Recipe shorter = recipe();
  shorter.phases.resize(1);
  const auto algorithm_of = [](const RecipeDiff& diff) {
    const auto found = std::find(diff.keys.begin(), diff.keys.end(), "phase.1.algorithm");
    if (found == diff.keys.end()) return std::vector<std::string>();
    return diff.values[std::size_t(found - diff.keys.begin())];
  };
  const RecipeDiff diff = recipe_diff(std::vector{shorter, recipe()});
  EXPECT_THAT(algorithm_of(diff), ElementsAre("", "\"fed_ep\""));
  EXPECT_THAT(algorithm_of(recipe_diff(std::vector{recipe(), shorter})),
              ElementsAre("\"fed_ep\"", ""));
  EXPECT_NE(std::find(diff.keys.begin(), diff.keys.end(), "phase.1.inference.name"),
            diff.keys.end());
}

}  // namespace
}  // namespace fedep
