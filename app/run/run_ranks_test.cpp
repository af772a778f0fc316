#include "app/run/run_ranks.h"

#include <filesystem>

#include <gtest/gtest.h>

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

TEST(Patience, Ends) { EXPECT_FALSE(patience_for(std::chrono::milliseconds(0))()); }

// Rank 0 alone plays what follows the rounds, and may be stopped there.
TEST(RunOfRanks, EndsForAllAsForTheFirst) {
  for (const RunEnd end : {RunEnd::done, RunEnd::interrupted}) {
    play_ranks(3, [&](Ranks& ranks) {
      EXPECT_EQ(end_together(ranks, ranks.is_first() ? end : RunEnd::done), end);
    });
  }
}

}  // namespace
}  // namespace fedep
