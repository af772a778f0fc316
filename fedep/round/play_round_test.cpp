// Rounds in main memory: who is asked, and the laws that hold wherever messages live.

#include "fedep/round/play_round.h"

#include <algorithm>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "fedep/message/error.h"
#include "fedep/round/test_round_faults.h"
#include "fedep/round/test_round_laws.h"

namespace fedep {
namespace {

INSTANTIATE_TYPED_TEST_SUITE_P(Host, RoundLaws, OnHost);
INSTANTIATE_TYPED_TEST_SUITE_P(Host, RoundFaults, OnHost);

TEST(SampleClients, DrawsDistinctClientsThatRepeatWithTheSeed) {
  std::vector<int> asked_of(50, 0);
  for (std::int64_t round = 0; round < 2000; ++round) {
    const std::vector<std::size_t> clients = sample_clients(5, round, 50, 10);
    EXPECT_EQ(clients, sample_clients(5, round, 50, 10));
    EXPECT_EQ(std::set(clients.begin(), clients.end()).size(), 10u);
    EXPECT_TRUE(std::is_sorted(clients.begin(), clients.end()));
    EXPECT_LT(clients.back(), 50u);
    for (const std::size_t client : clients) ++asked_of[client];
  }
  // 400 each expected, binomial deviation 18.
  for (const int times : asked_of) EXPECT_NEAR(times, 400, 5 * 18);
  EXPECT_NE(sample_clients(5, 0, 50, 10), sample_clients(6, 0, 50, 10));
  EXPECT_NE(sample_clients(5, 0, 50, 10), sample_clients(5, 1, 50, 10));
}

TEST(SampleClients, AsksEveryoneOrRefusesToAskMore) {
  EXPECT_EQ(sample_clients(1, 0, 3, 3), (std::vector<std::size_t>{0, 1, 2}));
  EXPECT_THROW(sample_clients(1, 0, 3, 4), InputError);
}

// Stochastic EP follows whom it asked last.
TEST(Cooldown, AveragesOverWhoWasAsked) {
  const auto distance = [](std::optional<CooldownSettings> cooldown) {
    Phase phase = sep_phase(2, ShareRule::equal);
    phase.cooldown = cooldown;
    Federation<OnHost> run(random_clients(6, Family::diagonal), phase);
    run.play(2000);
    const V off = run.global().eta() - run.posterior().eta();
    return std::sqrt(dot(off, off));
  };
  EXPECT_LT(distance(CooldownSettings{.after = 200, .rounds = 1800}), 0.3 * distance({}));
}

TEST(PlayRound, GoesOnWithoutAClientThatLies) {
  Federation<OnHost> honest(whole_clients(), ep_phase(4)), lied_to(whole_clients(), ep_phase(4));
  honest.executor.lost = {2};
  lied_to.parts().executor.liars = {2};
  honest.play();
  const RoundNumbers numbers = lied_to.play();
  EXPECT_EQ(numbers.dropped, 1u);
  EXPECT_EQ(honest.state(), lied_to.state());
  EXPECT_EQ(lied_to.factor(2), flat_like(V(3), Family::diagonal));
}

}  // namespace
}  // namespace fedep
