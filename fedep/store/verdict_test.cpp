#include "fedep/store/verdict.h"

#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fedep/config/read_recipe.h"
#include "fedep/round/diagnosis/convergence.h"

namespace fedep {
namespace {

using testing::HasSubstr;

constexpr const char* kRecipe = R"(
[data]
name = "toy"
[server]
clients_per_round = 4
[[phase]]
algorithm = "fed_ep"
rounds = 12
[phase.inference]
name = "exact"
)";

Recipe recipe_with(const std::vector<std::string>& overrides = {}) {
  return parse_recipe(kRecipe, "recipe", overrides);
}

// Rounds of windows of four, in which q moved by this much.
History history_of(const std::vector<double>& moved, std::int64_t clients = 4) {
  History history{.header = RunHeader{.clients = clients}};
  for (const double by : moved) {
    for (int i = 0; i < 4; ++i) {
      RoundRecord round{.round = std::int64_t(history.rounds.size()), .clients = 4};
      if (i == 0) round.window = 4;
      if (i == 3) round.window_end = WindowEnd{.mean_moved = by, .log_sd_moved = by / 2};
      history.rounds.push_back(round);
    }
  }
  history.end = RunEndRecord{.rounds = std::int64_t(history.rounds.size())};
  return history;
}

TEST(ARun, IsTrustedOnceTwoWindowsRunningAreBelowATwentieth) {
  EXPECT_EQ(verdict_of(recipe_with(), history_of({2, 0.3, 0.04, 0.01})), Verdict{});
  EXPECT_EQ(verdict_of(recipe_with(), history_of({2, 0.3, 0.06, 0.01})).trust, Trust::none);
  EXPECT_EQ(verdict_of(recipe_with(), history_of({2, 0.01, 0.04, 0.06})).trust, Trust::none);
}

TEST(ARun, ThatSlowsDownNeedsMoreRounds) {
  const Verdict verdict = verdict_of(recipe_with(), history_of({2, 0.3, 0.1}));
  EXPECT_THAT(verdict.why, HasSubstr("it has not converged: over the last window of 4 rounds q "
                                     "moved by 0.1 standard deviations"));
  EXPECT_EQ(verdict.key, "more rounds (phase.0.rounds)");
}

TEST(ARun, WhoseRoundsAreNoisyNeedsACooldown) {
  const Verdict verdict = verdict_of(recipe_with(), history_of({2, 0.3, 0.31}));
  EXPECT_THAT(verdict.key, HasSubstr("a phase.0.cooldown"));
}

// Rounds of windows of four, after which q had so far to go.
History creeping(const std::vector<double>& moved, const std::vector<MovesLeft>& left) {
  History history = history_of(moved);
  for (std::size_t i = 0; i < left.size(); ++i)
    history.rounds[4 * i + 3].window_end->left = left[i];
  return history;
}

TEST(ARun, ThatCreepsNeedsMoreRoundsHoweverSmallItsMoves) {
  const Verdict verdict =
      verdict_of(recipe_with(), creeping({2, 0.049, 0.047}, {{3, 0}, {1.6, 0}, {1.5, 0.1}}));
  EXPECT_EQ(verdict.trust, Trust::none);
  EXPECT_EQ(verdict.why,
            "it has not converged, but creeps: over the last window of 4 rounds q moved by 0.047 "
            "standard deviations, as before in one direction, with about 1.5 to go");
  EXPECT_EQ(verdict.key, "more rounds (phase.0.rounds)");
  // A cooldown would hide it.
  EXPECT_EQ(
      verdict_of(recipe_with(), creeping({0.331, 0.324, 0.317}, {{14, 0}, {15, 0}, {14, 0}})).key,
      "more rounds (phase.0.rounds)");
}

TEST(ARun, WhoseNoiseTurnsRoundDoesNotCreep) {
  EXPECT_EQ(verdict_of(recipe_with(), creeping({2, 0.04, 0.04}, {{0, 0}, {0.02, 0}, {0.5, 0}})),
            Verdict{});  // once by chance
  EXPECT_EQ(verdict_of(recipe_with(), creeping({2, 0.04, 0.04}, {{0, 0}, {0.5, 0}, {0.24, 0}})),
            Verdict{});
  EXPECT_THAT(verdict_of(recipe_with(), creeping({2, 3, 2.9}, {{0, 0}, {0.3, 0}, {0.3, 0}})).key,
              HasSubstr("a phase.0.cooldown"));
}

TEST(ARun, CreepsWithItsDeviationsToo) {
  EXPECT_THAT(
      verdict_of(recipe_with(), creeping({2, 0.04, 0.04}, {{0, 0}, {0, 1.1}, {0, 1}})).why,
      HasSubstr("changed its deviations by a factor of 1.02, as before in one direction, with "
                "about 2.7 to go"));
}

TEST(ACure, IsOneThatTheAlgorithmTakes) {
  const auto cure = [](const std::string& algorithm, const std::string& method) {
    return verdict_of(recipe_with({"server.prior={mean=0,precision=1}",
                                   "phase.0.algorithm='" + algorithm + "'",
                                   "phase.0.inference.name='" + method + "'"}),
                      history_of({2, 0.3, 0.31}))
        .key;
  };
  EXPECT_THAT(cure("fed_ep", "laplace"), HasSubstr("or a smaller server.optimizer.lr"));
  EXPECT_THAT(cure("pvi", "ivon"), HasSubstr("or a smaller phase.0.damping"));
  EXPECT_THAT(cure("bayes_admm", "laplace"), HasSubstr("or a smaller phase.0.dual_rate"));
}

TEST(ARun, WhoseServerStandsStillIsNotJudged) {
  History history = history_of({2});
  history.rounds[0].window = kEndless;
  history.rounds[3].window_end.reset();
  const Verdict verdict =
      verdict_of(recipe_with({"phase.0.schedule={server_rate={kind='constant',from=0}}"}), history);
  EXPECT_EQ(verdict.trust, Trust::not_judged);
  EXPECT_THAT(verdict.why, HasSubstr("the server's steps are 0"));
  EXPECT_THAT(verdict.key, HasSubstr("phase.0.schedule.server_rate"));
}

TEST(ARun, IsMeasuredByItsDeviationsToo) {
  History history = history_of({2, 0.01, 0.01});
  history.rounds.back().window_end->log_sd_moved = std::log(1.5);
  const Verdict verdict = verdict_of(recipe_with(), history);
  EXPECT_THAT(verdict.why, HasSubstr("changed its deviations by a factor of 1.5"));
}

TEST(ARun, ThatMovesFurtherAndFurtherDiverged) {
  const Verdict verdict = verdict_of(recipe_with(), history_of({0.5, 1.5, 4}));
  EXPECT_EQ(verdict.trust, Trust::none);
  EXPECT_THAT(verdict.why, HasSubstr("it diverged"));
  EXPECT_THAT(verdict.key, HasSubstr("server.optimizer.lr"));
  EXPECT_THAT(verdict_of(recipe_with(), history_of({0.5, 1.5, INFINITY})).why,
              HasSubstr("it diverged"));
}

TEST(ARun, ThatIsShorterThanTwoWindowsIsNotJudged) {
  for (const auto& moved : {std::vector<double>{}, {2}}) {
    History history = history_of(moved);
    history.rounds.push_back({.round = std::int64_t(history.rounds.size()), .window = 4});
    const Verdict verdict = verdict_of(recipe_with(), history);
    EXPECT_EQ(verdict.trust, Trust::not_judged);
    EXPECT_THAT(verdict.why, HasSubstr("two windows of 4"));
  }
}

TEST(ARun, WithAnImproperQIsNotTrustedHoweverShort) {
  const Verdict verdict = verdict_of(recipe_with(), history_of({2}), true, 3);
  EXPECT_EQ(verdict.trust, Trust::none);
  EXPECT_THAT(verdict.why, HasSubstr("3 of q's precisions are not positive"));
  EXPECT_THAT(verdict.key, HasSubstr("phase.0.guard = \"back_off\""));
  History history = history_of({2, 0.01, 0.01});
  history.end->improper = 1;
  EXPECT_EQ(verdict_of(recipe_with(), history).trust, Trust::none);
}

TEST(ARun, WhoseAnswersWereOftenRefusedIsNotTrusted) {
  History history = history_of({2, 0.01, 0.01});
  history.rounds[3].outside_grid = 1;
  EXPECT_EQ(verdict_of(recipe_with(), history).trust, Trust::full);
  history.rounds[9].outside_grid = 2;  // two of twelve
  const Verdict verdict = verdict_of(recipe_with(), history);
  EXPECT_EQ(verdict.trust, Trust::none);
  EXPECT_THAT(verdict.why, HasSubstr("answers were refused in 2 of 12 rounds"));
  EXPECT_THAT(verdict.key, HasSubstr("client.optimizer.lr"));
}

TEST(ARun, WhoseStepsTheGuardUndidIsNotTrusted) {
  History history = history_of({2, 0, 0});
  for (std::size_t round = 4; round < 12; ++round) history.rounds[round].step_scale = 0;
  EXPECT_THAT(verdict_of(recipe_with(), history).why, HasSubstr("the guard undid"));
}

TEST(Momentum, IsNamedWhereItPartsQFromItsFactors) {
  const std::vector<std::string> momentum{"server.optimizer.momentum=0.9"};
  const Verdict verdict = verdict_of(recipe_with(momentum), history_of({2, 0.3, 0.3}, 40));
  EXPECT_THAT(verdict.why, HasSubstr("the server's momentum of 0.9 acts on q in every round"));
  EXPECT_EQ(verdict.key, "phase.0.factor_clock = \"round\", or server.optimizer.momentum = 0");
  // Where everybody is asked in every round, both have the same clock.
  EXPECT_THAT(verdict_of(recipe_with(momentum), history_of({2, 0.3, 0.3}, 4)).why,
              testing::Not(HasSubstr("momentum")));
  const Verdict own =
      verdict_of(recipe_with({"phase.0.optimizer.name='sgd'", "phase.0.optimizer.momentum=0.5"}),
                 history_of({2, 0.3, 0.3}, 40));
  EXPECT_EQ(own.key, "phase.0.factor_clock = \"round\", or phase.0.optimizer.momentum = 0");
  // Nor are there two clocks where factors follow the server's steps.
  EXPECT_THAT(verdict_of(recipe_with({momentum[0], "phase.0.factor_clock='round'"}),
                         history_of({2, 0.3, 0.3}, 40))
                  .why,
              testing::Not(HasSubstr("momentum")));
}

TEST(Momentum, IsNamedWhereClientsDivergeToo) {
  History history = history_of({2, 0.3, 0.3}, 40);
  for (std::size_t i = 6; i < 12; ++i) history.rounds[i].outside_grid = 1;
  const Verdict verdict = verdict_of(recipe_with({"server.optimizer.momentum=0.9"}), history);
  EXPECT_THAT(verdict.why, HasSubstr("refused in 6 of 12 rounds"));
  EXPECT_THAT(verdict.why, HasSubstr("the server's momentum of 0.9"));
  EXPECT_THAT(verdict.key, HasSubstr("server.optimizer.momentum = 0, or smaller steps"));
}

TEST(APointEstimate, IsJudgedForDivergenceAlone) {
  const Recipe recipe = recipe_with({"phase.0.algorithm='fed_avg'"});
  History history = history_of({2, 2, 2});
  for (RoundRecord& round : history.rounds) {
    round.client_steps = 1;
    round.train_loss = 1;
  }
  EXPECT_EQ(verdict_of(recipe, history), Verdict{});
  for (std::size_t i = 4; i < 12; ++i) history.rounds[i].train_loss = 11;
  const Verdict verdict = verdict_of(recipe, history);
  EXPECT_EQ(verdict.trust, Trust::none);
  EXPECT_THAT(verdict.why, HasSubstr("training loss is 11, and was 1 in round 1"));
  for (std::size_t i = 4; i < 12; ++i) history.rounds[i].train_loss = NAN;
  EXPECT_THAT(verdict_of(recipe, history).why, HasSubstr("not finite"));
}

TEST(ARun, WhoseServerSlowedDownIsJudgedByTheRoundsBefore) {
  for (const auto& [before, expected] : {std::pair{0.01, Trust::full}, {0.3, Trust::not_judged}}) {
    History history = history_of({before, before, 0.001, 0.001});
    history.rounds[11].window_end->judged = false;
    history.rounds[15].window_end->judged = false;
    EXPECT_EQ(verdict_of(recipe_with(), history).trust, expected);
  }
}

TEST(ARun, ThatIsNotOverMayStillConverge) {
  History history = history_of({2, 0.3, 0.1});
  history.end.reset();
  EXPECT_EQ(verdict_of(recipe_with(), history).trust, Trust::not_judged);
}

TEST(Recipes, OfATableAreExempt) {
  Recipe recipe = recipe_with();
  recipe.table = "table2";
  EXPECT_EQ(verdict_of(recipe, history_of({2, 3, 4})).trust, Trust::not_judged);
}

TEST(TheLastPhase, IsTheOneThatIsJudged) {
  Recipe recipe = recipe_with();
  recipe.phases.insert(recipe.phases.begin(), recipe.phases[0]);
  recipe.phases[0].rounds = 8;
  EXPECT_EQ(verdict_of(recipe, history_of({2, 3, 0.01, 0.01})).trust, Trust::full);
  EXPECT_EQ(verdict_of(recipe, history_of({0.01, 0.01, 0.01})).trust, Trust::not_judged);
}

TEST(ALogOfAnEarlierVersion, SaysNothingOfConvergence) {
  History history = history_of({0, 0, 0});
  for (RoundRecord& round : history.rounds) {
    round.window = 0;
    round.window_end.reset();
  }
  EXPECT_THAT(verdict_of(recipe_with(), history).why, HasSubstr("does not say how far q moved"));
}

TEST(ARun, IsFinishedBeforeItsLastRoundOnlyWhereStopLetItEnd) {
  const History history = history_of({0.01, 0.01});
  EXPECT_FALSE(is_finished(recipe_with(), history));
  EXPECT_TRUE(is_finished(recipe_with({"stop.converged=0.05"}), history));
  EXPECT_TRUE(is_finished(recipe_with(), history_of({1, 0.01, 0.01})));
  History stopped = history;
  stopped.end.reset();
  EXPECT_FALSE(is_finished(recipe_with({"stop.converged=0.05"}), stopped));
}

TEST(ImproperCoordinates, AreCountedInEveryFamily) {
  using V = HostVector<float>;
  EXPECT_EQ(improper_coordinates(Message(V(3), V{1, 0, -1})), 2);
  EXPECT_EQ(improper_coordinates(Message(V(3), 1.0f)), 0);
  EXPECT_EQ(improper_coordinates(Message(V(3), -1.0f)), 3);
  EXPECT_EQ(improper_coordinates(in_family(Message(V(3), V{1, 0, -1}), Family::full)), 2);
}

}  // namespace
}  // namespace fedep
