#include "app/posterior/withheld.h"

#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/posterior/saved_posterior.h"
#include "app/test_run.h"
#include "fedep/config/read_recipe.h"

namespace fedep {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

// A first phase of FedAvg, then FedEP's ten rounds by Laplace, of which six are played.
Recipe two_phases() {
  return parse_recipe(R"(
[data]
name = "toy"
[[phase]]
algorithm = "fed_avg"
rounds = 4
[[phase]]
algorithm = "fed_ep"
rounds = 10
[phase.inference]
name = "laplace"
)");
}

struct Played {
  Recipe recipe = two_phases();
  std::vector<RoundRecord> rounds = std::vector<RoundRecord>(10);
  bool log = true;
  double least_precision = 1;

  Played() {
    for (std::size_t i = 0; i < rounds.size(); ++i) rounds[i].round = std::int64_t(i);
  }
  std::string why() const {
    return why_withheld({.recipe = recipe,
                         .phase = 1,
                         .round = 10,
                         .rounds = log ? &rounds : nullptr,
                         .least_precision = least_precision});
  }
};

TEST(Withheld, IsNothingThatWasInferred) { EXPECT_THAT(Played().why(), IsEmpty()); }

TEST(Withheld, NamesTheKeyOfTheMethodsSetting) {
  Played run;
  run.recipe.phases[1].inference->scale = 500;
  EXPECT_THAT(run.why(), HasSubstr("500 times what clients inferred"));
  EXPECT_THAT(run.why(), HasSubstr("phase.1.inference.scale = 1 "));
  run.recipe.phases[1].inference = InferenceSettings{.name = "scaled_identity"};
  EXPECT_THAT(run.why(), HasSubstr("phase.1.inference.name = \"laplace\""));
}

TEST(Withheld, IsAPosteriorOfRowsThatDoNotCountOnce) {
  Played run;
  run.recipe.phases[1].temperature = 0.25;
  EXPECT_THAT(run.why(), HasSubstr("every row counts as 4 rows"));
  EXPECT_THAT(run.why(), HasSubstr("phase.1.temperature = 1 "));
  run.recipe.phases[1].temperature = 1;
  EXPECT_THAT(run.why(), IsEmpty());
}

// IVON's steps are the chain's own: 4 epochs of 6 are 24, and 0.9^24 is 8 %.
TEST(Withheld, IsAnIvonThatHasNotForgottenWhereItBegan) {
  Played run;
  run.recipe.client.epochs = 4;
  run.recipe.phases[1].inference =
      InferenceSettings{.name = "ivon", .initial_scale = 0.5, .epochs = 100, .decay = 0.9};
  for (RoundRecord& round : run.rounds) {
    round.clients = 3;
    round.client_steps = 3 * 4 * 6;
  }
  EXPECT_THAT(run.why(), HasSubstr("92 % of them is inferred"));
  EXPECT_THAT(run.why(), HasSubstr("client.epochs = 8 "));
  run.recipe.phases[1].inference->decay = 0.85;  // 2 %
  EXPECT_THAT(run.why(), IsEmpty());
}

// 4 chain epochs of 6 batches a visit; 5 epochs of squared gradients are 30 batches: 0.9^30 is 4.2 %.
TEST(Withheld, IsARunningMeanThatHasNotForgottenWhereItBegan) {
  Played run;
  run.recipe.client.epochs = 4;
  run.recipe.phases[1].inference = InferenceSettings{.name = "ngvi", .epochs = 5, .decay = 0.9};
  for (RoundRecord& round : run.rounds) {
    round.clients = 3;
    round.client_steps = 3 * 4 * 6;
  }
  EXPECT_THAT(run.why(), IsEmpty());
  run.recipe.phases[1].inference->epochs = 4;  // 0.9^24 is 8 %
  EXPECT_THAT(run.why(), HasSubstr("92 % of them is inferred"));
  EXPECT_THAT(run.why(), HasSubstr("phase.1.inference.epochs = 8 "));
  run.log = false;
  EXPECT_THAT(run.why(), HasSubstr("34 % of them is inferred"));  // 1 - 0.9^4
}

TEST(Withheld, IsWhatIsNoProductOfTheClients) {
  Played run;
  PhaseSettings& phase = run.recipe.phases[1];
  phase.cavity = CavityKind::whole;
  EXPECT_THAT(run.why(), HasSubstr("counts its client's data once more; phase.1.cavity"));
  phase.cavity = CavityKind::flat;
  EXPECT_THAT(run.why(), HasSubstr("an average of the clients' own"));
  phase.cavity = CavityKind::share;
  EXPECT_THAT(run.why(), IsEmpty());
  phase.weight = WeightRule::examples;
  EXPECT_THAT(run.why(), HasSubstr("phase.1.weight = \"equal\""));
  phase.cavity =
      CavityKind::own_factor;  // a factor that all agree on does not move, however weighted
  EXPECT_THAT(run.why(), IsEmpty());
}

TEST(Withheld, IsAClippedPrecisionWhereTheClipActedInItsPhase) {
  Played run;
  run.rounds[2].clipped = 3;  // by another phase
  run.recipe.phases[1].clip = 100;
  EXPECT_THAT(run.why(), IsEmpty());
  run.rounds[4].clipped = 1;
  EXPECT_THAT(run.why(), HasSubstr("were clipped in 1 round; phase.1.clip = 0 clips none"));
  run.rounds[9].clipped = 2;
  EXPECT_THAT(run.why(), HasSubstr("in 2 rounds"));
}

TEST(Withheld, IsWhatALogThatIsMissingCouldHaveSaid) {
  Played run;
  run.log = false;
  EXPECT_THAT(run.why(), IsEmpty());
  run.recipe.phases[1].clip = 100;
  EXPECT_THAT(run.why(), HasSubstr("not known without the run's log.jsonl"));
  run.log = true;
  run.rounds.pop_back();  // the checkpoint's last round
  EXPECT_THAT(run.why(), HasSubstr("not known without the run's log.jsonl"));
}

TEST(Withheld, IsWhatTheFloorRaised) {
  Played run;
  run.recipe.phases[1].guard = {.mode = GuardMode::floor, .floor = 0.5};
  run.least_precision = 10.1;
  EXPECT_THAT(run.why(), IsEmpty());
  run.least_precision = 9.9;
  EXPECT_THAT(run.why(), HasSubstr("guard_floor = 0.5; phase.1.guard = \"back_off\""));
  run.least_precision = 10.1;
  run.rounds[8].guarded = 1;
  EXPECT_THAT(run.why(), HasSubstr("guard_floor"));
  run.recipe.phases[1].guard.mode = GuardMode::back_off;
  EXPECT_THAT(run.why(), IsEmpty());
}

// As a last round of curvature has them.
TEST(Withheld, IsNoPrecisionThatWasInferredAnewForWhatRoundsDidToTheOldOne) {
  Recipe recipe = two_phases();
  recipe.phases[1].inference->scale = 500;
  PosteriorFacts facts{.recipe = recipe, .phase = 1, .round = 0, .of_rounds = false};
  EXPECT_THAT(why_withheld(facts), IsEmpty());
  facts.distrust = "it diverged";
  EXPECT_EQ(why_withheld(facts), "it diverged");
}

TEST(Withheld, IsThePosteriorOfARunThatIsNotToBeTrustedWhateverElseIsRight) {
  const Recipe recipe = two_phases();
  EXPECT_EQ(why_withheld({.recipe = recipe, .phase = 1, .round = 0, .distrust = "it diverged"}),
            "it diverged");
}

TEST(Withheld, IsAnImproperPosterior) {
  const Recipe recipe = two_phases();
  EXPECT_THAT(why_withheld({.recipe = recipe, .phase = 1, .round = 0, .proper = false}),
              HasSubstr("improper"));
}

TEST(Withheld, IsAMatrixThatFloatsCannotInvert) {
  const Recipe recipe = two_phases();
  PosteriorFacts facts{.recipe = recipe, .phase = 1, .round = 0, .full = true, .condition = 1e6};
  EXPECT_THAT(why_withheld(facts), IsEmpty());
  facts.condition = 1.1e6;
  EXPECT_THAT(why_withheld(facts), HasSubstr("condition number of 1.1e+06"));
}

constexpr const char* kFromAlpha =
    "algorithm = \"fed_ep\"\nfactors = \"carry_mean\"\n[phase.inference]\nname = \"laplace\"\n"
    "family = \"diagonal\"\n";

// Six rounds with 0.99/3 of each factor replaced leave 0.67^6 of alpha = 1 an example, of 240.
TEST(StartNote, SaysHowMuchOfAPrecisionWasNotInferred) {
  const TestRun run(kFromAlpha);
  SavedPosterior saved = read_posterior(run.path());
  EXPECT_NEAR(saved.start_precision, 240 * std::pow(0.67, 6), 1e-6);
  const std::vector<double> shares = start_shares(saved);
  ASSERT_EQ(shares.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(shares[i], saved.start_precision / double(saved.state.global.lambda_vector()[i]),
                1e-9);
  }
  EXPECT_THAT(start_note(saved), HasSubstr("phase.0.factors = \"flat\""));
  saved.state.global = Message(HostVector<float>{1}, HostVector<float>{100});
  saved.start_precision = 5;
  EXPECT_THAT(start_note(saved), IsEmpty());
  saved.start_precision = 19;
  EXPECT_THAT(start_note(saved), HasSubstr("up to 19 % of a weight's precision"));
  EXPECT_THAT(start_note(saved), HasSubstr("too small by up to 10 %"));
}

TEST(StartNote, IsNotNeededWhereFactorsBeginFlat) {
  const TestRun run(kFedEp);
  const SavedPosterior saved = read_posterior(run.path());
  EXPECT_EQ(saved.start_precision, 0);
  EXPECT_THAT(start_shares(saved), IsEmpty());
  EXPECT_THAT(start_note(saved), IsEmpty());
}

TEST(StartNote, SaysThatItIsNotKnownWithoutALog) {
  const TestRun run(kFromAlpha);
  std::filesystem::remove(run.path() / "log.jsonl");
  const SavedPosterior saved = read_posterior(run.path());
  EXPECT_TRUE(saved.posterior);
  EXPECT_THAT(start_shares(saved), IsEmpty());
  EXPECT_THAT(start_note(saved), HasSubstr("is not known"));
}

}  // namespace
}  // namespace fedep
