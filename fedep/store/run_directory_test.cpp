#include "fedep/store/run_directory.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fedep/config/read_recipe.h"
#include "fedep/message/error.h"
#include "fedep/message/test_folder.h"

namespace fedep {
namespace {

using testing::ElementsAre;

constexpr const char* kRecipe = R"(
seed = 3
[data]
name = "toy"
[[phase]]
algorithm = "fed_avg"
rounds = 3
[[phase]]
algorithm = "fed_avg"
rounds = 4
)";

TEST(RunDirectory, ListsItsCheckpointsFromTheFirstRoundToTheLast) {
  const TemporaryFolder folder;
  const RunDirectory run = RunDirectory::create(folder.path() / "run", parse_recipe(kRecipe));
  for (const std::int64_t round : {100, 9, 20}) std::ofstream(run.checkpoint(round)) << "state";
  for (const char* other : {"checkpoint-7x.safetensors", "checkpoint-.safetensors",
                            "checkpoint-8.safetensors.tmp", ".checkpoint-9.safetensors.tmp"}) {
    std::ofstream(run.path() / other) << "no checkpoint";
  }
  EXPECT_THAT(run.checkpoints(), ElementsAre(9, 20, 100));
  run.remove_checkpoint(20);
  EXPECT_THAT(run.checkpoints(), ElementsAre(9, 100));
}

TEST(RunDirectory, IsOpenedAgainWithItsOwnRecipeOrOneThatGoesOn) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "run";
  const Recipe recipe = parse_recipe(kRecipe);
  RunDirectory::create(path, recipe);
  EXPECT_THROW(RunDirectory::create(path, recipe), InputError);
  EXPECT_NO_THROW(RunDirectory::reopen(path, recipe));
  Recipe longer = recipe;
  longer.phases[1].rounds = 40;
  EXPECT_NO_THROW(RunDirectory::reopen(path, longer));
  const auto refused = [&](auto change) {
    Recipe other = longer;
    change(other);
    EXPECT_THROW(RunDirectory::reopen(path, other), InputError);
  };
  refused([](Recipe& other) { other.seed = 4; });
  refused([](Recipe& other) { other.client.epochs = 2; });
  refused([](Recipe& other) { other.phases[0].rounds = 30; });
  refused([](Recipe& other) { other.phases[1].clip = 1; });
  EXPECT_THROW(RunDirectory::reopen(folder.path() / "none", recipe), InputError);
}

}  // namespace
}  // namespace fedep
