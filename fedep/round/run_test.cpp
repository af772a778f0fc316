#include "fedep/round/run.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fedep/config/read_recipe.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr const char* kRecipe = R"(
[data]
name = "toy"
[[phase]]
algorithm = "fed_avg"
rounds = 3
[[phase]]
algorithm = "fed_avg"
rounds = 4
[evaluate]
every = 2
)";

// Each round adds 1 to the weight, and client 7 is visited. Messages are elsewhere until they are
// brought home.
class CountingPlace final : public Place {
 public:
  SiteStore& sites() override { return *sites_; }
  RoundNumbers play(ServerState& state, const Phase& phase) override {
    first_rounds.push_back(phase.first_round);
    visited_before.push_back(sites_->visited());
    sites_->propose(7, state.round, {});
    sites_->settle(state.round, std::vector<std::uint64_t>{7});
    if (is_home_) there_ = state.global;
    is_home_ = false;
    there_ = product(there_, Message(HostVector<float>{1.0f}, 0.0f));
    ++state.round;
    return {.asked = 5};
  }
  void bring_home(ServerState& state) override {
    if (!is_home_) state.global = there_;
    is_home_ = true;
  }
  std::optional<FactorGap> factor_gap(const ServerState& state, const Phase&) override {
    return FactorGap{.eta = point_estimate(state)[0], .lambda = 2};
  }
  Metrics evaluate(const ServerState& state, bool last) override {
    return {{last ? "last" : "round", double(state.round)}};
  }

  // Of every round played: its phase's first, and clients that then had a factor.
  std::vector<std::int64_t> first_rounds;
  std::vector<std::size_t> visited_before;

 private:
  std::unique_ptr<SiteStore> sites_ = make_memory_store();
  Message there_;
  bool is_home_ = true;
};

// Keeps the state after every third round, and when it stops.
class MemoryKeeper final : public RunKeeper {
 public:
  std::optional<ServerState> begin() override { return kept; }
  void write(const RoundReport& round) override { rounds.push_back(round.round); }
  bool wants(std::int64_t completed, const Phase&, bool stop) const override {
    return stop || completed % 3 == 0;
  }
  void keep(const ServerState& state, const Phase&, bool) override { kept = state; }
  void end(const ServerState& state, double) override { ended = state.round; }
  std::int64_t goes_on_from() const override { return kept ? kept->round : 0; }

  std::optional<ServerState> kept;
  std::vector<std::int64_t> rounds;
  std::int64_t ended = 0;
};

class Runs : public testing::Test {
 protected:
  RunResult play(const RunHooks& hooks = {}, RunKeeper* keeper = nullptr) {
    CountingPlace place;
    return play_run({recipe_, phases_, population_, layout_, place}, {0.5f}, hooks, keeper);
  }
  static RunHooks stop_after(int& rounds) {
    return {.stop_requested = [&rounds] { return --rounds == 0; }};
  }

  const Recipe recipe_ = parse_recipe(kRecipe);
  const std::vector<Phase> phases_ =
      plan_phases(recipe_, [](std::string_view) { return Family::diagonal; });
  const Population population_ = make_population({{"a", 1}});
  const Layout layout_{{"weight", {1}}};
};

TEST_F(Runs, PlayEveryRoundOnceAndScoreTheLastAndThoseThatAreDue) {
  std::vector<std::string> seen;
  const RunResult result = play({.watch = [&](const RoundReport& report) {
    EXPECT_EQ(report.rounds, 7);
    EXPECT_EQ(report.numbers.asked, 5u);
    for (const auto& [name, value] : report.metrics)
      seen.push_back(name + std::to_string(int(value)));
  }});
  EXPECT_THAT(seen, ElementsAre("round2", "round4", "round6", "last7"));
  EXPECT_EQ(result.end, RunEnd::done);
  EXPECT_EQ(result.played, 7);
  EXPECT_EQ(result.state.round, 7);
  EXPECT_EQ(result.state.phase, 1);
  EXPECT_EQ(point_estimate(result.state)[0], 7.5f);  // brought home
}

TEST_F(Runs, HaveEachRoundInItsPhaseWhichBeginsWithNobodysFactor) {
  CountingPlace place;
  play_run({recipe_, phases_, population_, layout_, place}, {0.5f});
  EXPECT_THAT(place.first_rounds, ElementsAre(0, 0, 0, 3, 3, 3, 3));
  EXPECT_THAT(place.visited_before, ElementsAre(0u, 1u, 1u, 0u, 1u, 1u, 1u));
  for (std::int64_t round = 0; round < 7; ++round) {
    EXPECT_EQ(phase_of(phases_, round), round < 3 ? 0u : 1u) << round;
  }
}

TEST_F(Runs, StoppedAnywhereAndBegunAgainEndInTheSameState) {
  const RunResult whole = play();
  for (int stop = 1; stop < 7; ++stop) {
    MemoryKeeper keeper;
    int rounds = stop;
    const RunResult first = play(stop_after(rounds), &keeper);
    EXPECT_EQ(first.end, RunEnd::interrupted);
    EXPECT_EQ(first.goes_on_from, stop);
    EXPECT_EQ(keeper.ended, 0);
    const RunResult second = play({}, &keeper);
    EXPECT_EQ(second.end, RunEnd::done);
    EXPECT_EQ(first.played + second.played, 7);
    EXPECT_EQ(second.state, whole.state);
    EXPECT_THAT(keeper.rounds, ElementsAre(0, 1, 2, 3, 4, 5, 6));
    EXPECT_EQ(keeper.ended, 7);
  }
}

// Of the state that was brought home.
TEST_F(Runs, TakeThePlacesWordForHowFarQIsFromItsFactorsAtTheEndOfPhasesThatHaveSome) {
  std::vector<Phase> phases = phases_;
  phases[1].cavity = CavityKind::dual;
  CountingPlace place;
  std::vector<std::pair<std::int64_t, double>> gaps;
  play_run({recipe_, phases, population_, layout_, place}, {0.5f},
           {.watch = [&](const RoundReport& report) {
             const FactorGap& gap = report.numbers.factor_gap;
             if (!std::isnan(gap.eta)) gaps.emplace_back(report.round, gap.eta);
             EXPECT_EQ(std::isnan(gap.lambda), std::isnan(gap.eta));
           }});
  EXPECT_THAT(gaps, ElementsAre(testing::Pair(6, 7.5)));
}

// What was not kept is played again.
TEST_F(Runs, ThatDiedGoOnFromTheLatestStateThatIsKept) {
  const RunResult whole = play();
  MemoryKeeper keeper;
  RunHooks hooks;
  hooks.watch = [](const RoundReport& report) {
    if (report.round == 4) throw RunError("the power went");
  };
  EXPECT_THROW(play(hooks, &keeper), RunError);
  ASSERT_TRUE(keeper.kept);
  EXPECT_EQ(keeper.kept->round, 3);
  EXPECT_EQ(point_estimate(*keeper.kept)[0], 3.5f);  // brought home before it is kept
  const RunResult again = play({}, &keeper);
  EXPECT_EQ(again.played, 4);
  EXPECT_EQ(again.state, whole.state);
}

TEST_F(Runs, ThatAreOverStillSayHowTheyEnded) {
  MemoryKeeper keeper;
  play({}, &keeper);
  keeper.kept->round = 7;
  keeper.rounds.clear();
  const RunResult again = play({}, &keeper);
  EXPECT_EQ(again.played, 0);
  EXPECT_THAT(again.metrics, ElementsAre(testing::Pair("last", 7.0)));
  EXPECT_THAT(keeper.rounds, IsEmpty());
}

TEST_F(Runs, RefuseWeightsOfAnotherModel) {
  CountingPlace place;
  EXPECT_THROW(play_run({recipe_, phases_, population_, layout_, place}, {1.0f, 2.0f}), InputError);
}

TEST(WhatIsDueEverySoOften, IsDueAfterTheLastRoundToo) {
  EXPECT_TRUE(is_due(3, 6, 10));
  EXPECT_FALSE(is_due(3, 7, 10));
  EXPECT_TRUE(is_due(3, 10, 10));
  EXPECT_TRUE(is_due(0, 10, 10));
  EXPECT_FALSE(is_due(0, 3, 10));
}

}  // namespace
}  // namespace fedep
