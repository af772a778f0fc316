// FedEP with server momentum and a quarter of its clients a round, from a recipe to what the run says:
// on visits the model is lost while nobody diverged, on the server's clock it is not.

#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/run/run_recipe.h"
#include "fedep/config/read_recipe.h"
#include "fedep/message/test_folder.h"
#include "fedep/store/log/history.h"

namespace fedep {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kRecipe = R"(
[data]
name = "synthetic"
clients = 40
dimension = 10
examples = 40
alpha = 0
beta = 0
[client]
epochs = 5
batch = 10
optimizer = { name = "sgd", lr = 0.05, momentum = 0.9 }
[server]
clients_per_round = 10
optimizer = { name = "sgd", lr = 0.5, momentum = 0.9 }
[[phase]]
algorithm = "fed_avg"
rounds = 30
[[phase]]
algorithm = "fed_ep"
rounds = 120
[phase.inference]
name = "laplace"
alpha = 0.002
epochs = 2
[evaluate]
every = 10
[checkpoint]
every = 70
)";

struct Played {
  History history;
  std::string said;

  const RoundRecord& after(std::size_t rounds) const { return history.rounds[rounds - 1]; }
  double accuracy(std::size_t rounds) const { return score_of(after(rounds), "accuracy"); }
};

Played play(const std::vector<std::string>& changes) {
  const TemporaryFolder folder;
  testing::internal::CaptureStderr();
  run_recipe(parse_recipe(kRecipe, "recipe", changes), {.out = folder.path() / "run", .data = ""});
  const std::string said = testing::internal::GetCapturedStderr();
  return {read_history(folder.path() / "run" / "log.jsonl"), said};
}

TEST(FactorClock, OnVisitsMomentumLosesTheModelAndTheRunSaysWhy) {
  const Played run = play({});
  EXPECT_GT(run.accuracy(100), 0.4);
  EXPECT_LT(run.accuracy(150), 0.25);  // of ten classes
  EXPECT_GT(run.after(70).factor_gap_eta, 0.2);
  EXPECT_GT(run.after(150).factor_gap_lambda, 0.2);
  EXPECT_THAT(run.said, AllOf(HasSubstr("q is not the product"), HasSubstr("momentum of 0.9"),
                              HasSubstr("factor_clock = \"round\"")));
}

TEST(FactorClock, OfTheServerKeepsIt) {
  const Played run = play({"phase.1.factor_clock=round"});
  EXPECT_GT(run.accuracy(150), 0.4);
  for (const std::size_t rounds : {70u, 140u, 150u}) {
    EXPECT_LT(run.after(rounds).factor_gap_eta, 1e-4);
    EXPECT_LT(run.after(rounds).factor_gap_lambda, 1e-4);
  }
  EXPECT_TRUE(std::isnan(run.after(71).factor_gap_eta));  // nobody looked
  EXPECT_THAT(run.said, Not(HasSubstr("factor_clock")));
}

TEST(FactorClock, OfFactorsOnDiskIsNotLookedAtWhichIsSaid) {
  const Played run = play({"checkpoint.sites=disk", "phase.0.rounds=2", "phase.1.rounds=2"});
  EXPECT_TRUE(std::isnan(run.history.rounds.back().factor_gap_eta));
  EXPECT_THAT(run.said, HasSubstr("on disk (checkpoint.sites), so q was not held against"));
}

}  // namespace
}  // namespace fedep
