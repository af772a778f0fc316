#include "app/run/run_ranks.h"

#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "app/run/run_recipe.h"
#include "fedep/config/read_recipe.h"
#include "fedep/message/error.h"
#include "fedep/message/test_folder.h"
#include "fedep/sim/ranks/test_thread_ranks.h"

namespace fedep {
namespace {

const Patience kNone = [] { return false; };

TEST(SharedDirectory, MayBeSeenLate) {
  const TemporaryFolder folder;
  const std::filesystem::path there = folder.path() / "there", seen = folder.path() / "seen";
  std::filesystem::create_directory(there);
  play_ranks(2, [&](Ranks& ranks) {
    const Patience until_it_is_there = [&] {
      std::filesystem::create_directory_symlink(there, seen);
      return true;
    };
    EXPECT_NO_THROW(
        check_shared_directory(ranks, ranks.is_first() ? there : seen, until_it_is_there));
  });
  EXPECT_TRUE(std::filesystem::is_empty(there));
}

TEST(SharedDirectory, IsRefusedWhereItIsNeverSeen) {
  const TemporaryFolder folder;
  play_ranks(2, [&](Ranks& ranks) {
    const std::filesystem::path mine = folder.path() / (ranks.is_first() ? "" : "elsewhere");
    EXPECT_THROW(check_shared_directory(ranks, mine, kNone), InputError);
  });
}

TEST(SharedDirectory, IsClearedByOneProcessThatGoesOn) {
  const TemporaryFolder folder;
  const Recipe recipe =
      parse_recipe("[data]\nname = \"toy\"\n[[phase]]\nalgorithm = \"fed_avg\"\nrounds = 1\n");
  run_recipe(recipe, {.out = folder.path(), .data = ""});
  folder.write(".ranks", "token");
  folder.write("..ranks.tmp", "tok");
  run_recipe(recipe, {.out = folder.path(), .data = "", .resume = true});
  EXPECT_FALSE(std::filesystem::exists(folder.path() / ".ranks"));
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "..ranks.tmp"));
}

TEST(Patience, Ends) { EXPECT_FALSE(patience_for(std::chrono::milliseconds(0))()); }

// Rank 0 alone plays what follows the rounds, and may be stopped there.
TEST(RunOfRanks, EndsForAllAsForTheFirst) {
  for (const RunEnd end : {RunEnd::done, RunEnd::interrupted}) {
    play_ranks(3, [&](Ranks& ranks) {
      EXPECT_EQ(end_together(ranks, ranks.is_first() ? end : RunEnd::done), end);
    });
  }
}

// Ranks that differ in these would not make the same calls, and wait for one another.
TEST(RunOfRanks, NeedsTheSameOptions) {
  const Recipe recipe =
      parse_recipe("[data]\nname = \"toy\"\n[[phase]]\nalgorithm = \"fed_avg\"\nrounds = 1\n");
  const auto refusal = [&](const std::function<void(RunRecipeOptions&)>& change) {
    std::string why;
    play_ranks(2, [&](Ranks& ranks) {
      RunRecipeOptions how{.ranks = &ranks, .scratch = ranks.is_first() ? "/one" : "/other"};
      if (!ranks.is_first()) change(how);
      const auto task = make_task(recipe, "");
      try {
        compare_run_of_ranks(recipe, plan_run(recipe, *task), *task, 0, how);
      } catch (const InputError& error) {
        if (ranks.is_first()) why = error.what();
      }
    });
    return why.substr(0, why.find(" must"));
  };
  EXPECT_EQ(refusal([](RunRecipeOptions&) {}), "");
  EXPECT_EQ(refusal([](RunRecipeOptions& how) { how.threads = 2; }), "--threads");
  EXPECT_EQ(refusal([](RunRecipeOptions& how) { how.device = "cuda"; }), "--device");
  EXPECT_EQ(refusal([](RunRecipeOptions& how) { how.precision = "float32"; }), "--precision");
  EXPECT_EQ(refusal([](RunRecipeOptions& how) { how.scratch = ""; }), "--scratch");
}

}  // namespace
}  // namespace fedep
