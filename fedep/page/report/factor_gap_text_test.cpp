#include "fedep/page/report/factor_gap_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fedep/page/test_runs.h"

namespace fedep {
namespace {

using testing::HasSubstr;

double half(std::int64_t) { return 0.5; }

RoundRecord with_gap(std::int64_t number, double eta, double lambda) {
  RoundRecord round = test_round(number, 0.5);
  round.factor_gap_eta = eta;
  round.factor_gap_lambda = lambda;
  return round;
}

std::string text_of(const std::vector<std::string>& changes, double eta = 0.43,
                    double lambda = 0.3) {
  return factor_gap_text(parse_recipe(kTestRecipe, "recipe", changes), with_gap(5, eta, lambda));
}

TEST(FactorGapText, IsOfTheLatestRoundInWhichSomebodyLooked) {
  RunRecord run = test_run("a", 1, half);
  EXPECT_FALSE(last_factor_gap(run.history.rounds));
  run.history.rounds[2] = with_gap(2, 0.1, 0.1);
  run.history.rounds[4] = with_gap(4, 0.2, 0.2);
  EXPECT_EQ(last_factor_gap(run.history.rounds)->round, 4);
}

TEST(FactorGapText, SaysNothingOfWhatRoundingLeaves) {
  EXPECT_EQ(text_of({"server.optimizer.momentum=0.9"}, 1e-6, 1e-5), "");
  EXPECT_NE(text_of({"server.optimizer.momentum=0.9"}, 1e-6, 0.02), "");
  EXPECT_NE(text_of({"server.optimizer.momentum=0.9"}, 0.02, 1e-6), "");
}

TEST(FactorGapText, NamesMomentumAndTheKeyThatKeepsQTogether) {
  const std::string text = text_of({"server.optimizer.momentum=0.9"});
  EXPECT_THAT(text, HasSubstr("after round 6"));
  EXPECT_THAT(text, HasSubstr("0.43 for η and 0.3 for Λ"));
  EXPECT_THAT(text, HasSubstr("momentum of 0.9"));
  EXPECT_THAT(text, HasSubstr("factor_clock = \"round\""));
}

TEST(FactorGapText, NamesWhateverElseMovesQOtherwiseThanFactors) {
  EXPECT_THAT(text_of({"server.optimizer.name=adam"}), HasSubstr("Steps of adam"));
  EXPECT_THAT(text_of({"server.factor_optimizer.lr=0.5"}), HasSubstr("other optimizer settings"));
  EXPECT_THAT(text_of({"phase.1.guard=floor"}), HasSubstr("guard = \"floor\""));
  EXPECT_THAT(text_of({"phase.1.optimizer_state=carry", "server.optimizer.momentum=0.9"}),
              HasSubstr("optimizer_state = \"carry\""));
}

}  // namespace
}  // namespace fedep
