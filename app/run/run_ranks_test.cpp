#include "app/run/run_ranks.h"

#include <gtest/gtest.h>

#include "fedep/sim/ranks/test_thread_ranks.h"

namespace fedep {
namespace {

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
