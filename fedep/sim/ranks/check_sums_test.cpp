// That a wrong sum is found whatever its length, and by all ranks where only one has it.

#include "fedep/sim/ranks/check_sums.h"

#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "fedep/message/error.h"
#include "fedep/message/test_folder.h"
#include "fedep/sim/ranks/test_thread_ranks.h"

namespace fedep {
namespace {

void spoil_sums(Ranks& ranks, std::size_t shortest, std::size_t longest = 1u << 30) {
  dynamic_cast<ThreadRanks&>(ranks).after_sum = [=](std::span<std::int64_t> numbers) {
    if (numbers.size() >= shortest && numbers.size() <= longest) ++numbers.back();
  };
}

TEST(CheckSums, LetRanksThatAddGoOn) {
  play_ranks(3, [](Ranks& ranks) { EXPECT_NO_THROW(check_sums(ranks, ranks)); });
}

TEST(CheckSums, FindWrongOnesOfAnyLength) {
  play_ranks(2, [](Ranks& ranks) {
    for (const std::size_t length : {1u, 10007u, 1u << 18}) {
      spoil_sums(ranks, length, length);
      EXPECT_THROW(check_sums(ranks, ranks), RunError) << length;
    }
    spoil_sums(ranks, 1u << 19);
    EXPECT_NO_THROW(check_sums(ranks, ranks));
  });
}

TEST(CheckSums, EndAllRanksAlikeWhereOneHasAWrongOne) {
  play_ranks(3, [](Ranks& ranks) {
    if (ranks.rank() == 1) spoil_sums(ranks, 2, 10007);
    EXPECT_EQ(
        message_of<RunError>([&] { check_sums(ranks, ranks); }),
        "MPI: on rank 1 (here) the sum of integers over 3 ranks must be 10952166604803, but is "
        "10952166604804 (place 10007 of 10007, 64 bits): this MPI library cannot be relied on");
  });
}

TEST(CheckSums, OfAGroupEndAllRanks) {
  play_ranks(4, [](Ranks& ranks) {
    const std::unique_ptr<Ranks> group = ranks.group(2);
    EXPECT_NO_THROW(check_sums(*group, ranks));
    if (ranks.rank() == 3) spoil_sums(*group, 1);
    const std::string why = message_of<RunError>([&] { check_sums(*group, ranks); });
    EXPECT_TRUE(why.starts_with("MPI: on rank 3 (here) the sum of integers over 2 ranks")) << why;
  });
}

}  // namespace
}  // namespace fedep
