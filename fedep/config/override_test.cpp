#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "fedep/config/read_recipe.h"
#include "fedep/message/error.h"
#include "fedep/message/test_folder.h"

namespace fedep {
namespace {

constexpr const char* kRecipe = R"(seed = 1
[data]
name = "synthetic"
[server]
prior = "flat"
optimizer = { name = "sgd", lr = 1.0, momentum = 0.9 }
[[phase]]
algorithm = "fed_avg"
rounds = 4
[[phase]]
algorithm = "fed_ep"
rounds = 6
[phase.inference]
name = "laplace"
alpha = 0.05
[[phase]]
algorithm = "fed_sep"
rounds = 8
[phase.inference]
name = "ngvi"
alpha = 0.06
)";

Recipe with(const std::vector<std::string>& overrides) {
  return parse_recipe(kRecipe, "recipe.toml", overrides);
}

std::string refusal(const std::string& change) {
  return message_of<InputError>([&] { (void)with({change}); });
}

TEST(Override, ChangesWhatItNamesAndNothingElse) {
  Recipe expected = with({});
  expected.server.optimizer.lr = 0.5;
  expected.server.factor_optimizer = expected.server.optimizer;
  EXPECT_EQ(with({"server.optimizer.lr=0.5"}), expected);
}

TEST(Override, EqualsTheSameLineInTheFile) {
  EXPECT_EQ(with({"client.epochs=7"}),
            parse_recipe(std::string(kRecipe) + "[client]\nepochs = 7\n"));
}

TEST(Override, TheLaterOneWins) { EXPECT_EQ(with({"seed=2", "seed=3"}), with({"seed=3"})); }

TEST(Override, TakesAStringWithOrWithoutQuotes) {
  EXPECT_EQ(with({"data.path=a/b c.csv"}).data.path, "a/b c.csv");
  EXPECT_EQ(with({"data.path=\"a/b c.csv\""}).data.path, "a/b c.csv");
  EXPECT_EQ(with({"data.path='3'"}).data.path, "3");
  EXPECT_EQ(with({"data.path=a=b"}).data.path, "a=b");
  EXPECT_EQ(with({"data.path=C:\\x\"y"}).data.path, "C:\\x\"y");
  EXPECT_EQ(with({"server.damping=0.5", "server.damping=1/K"}), with({}));
  EXPECT_EQ(with({"client.remainder=drop"}).client.remainder, Remainder::drop);
}

TEST(Override, ReplacesATableByATable) {
  EXPECT_EQ(with({"server.optimizer={ name = \"adam\" }"}).server.optimizer,
            OptimizerSettings{.name = "adam"});
  EXPECT_EQ(with({"server.prior={ precision = 2 }"}).server.prior, PriorSettings{.precision = 2});
}

TEST(Override, TakesAListInBothForms) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(with({"data.features=age, sex"}).data.features, (Names{"age", "sex"}));
  EXPECT_EQ(with({R"(data.features=["age", "weight, kg"])"}).data.features,
            (Names{"age", "weight, kg"}));
  EXPECT_EQ(refusal("data.missing=[\"NA\", -1]"),
            "--set data.missing=[\"NA\", -1]: data.missing.1 must be a string, but is -1");
}

TEST(Override, MakesTheTablesItNeeds) {
  EXPECT_EQ(with({"client.optimizer.lr=0.125"}).client.optimizer.lr, 0.125);
}

TEST(Override, ChangesThePhaseOfItsIndex) {
  const Recipe recipe = with({"phase.1.inference.alpha=0.5", "phase.0.rounds=1"});
  EXPECT_EQ(recipe.phases[0].rounds, 1);
  EXPECT_EQ(recipe.phases[1].rounds, 6);
  EXPECT_EQ(recipe.phases[1].inference->alpha, 0.5);
  EXPECT_EQ(recipe.phases[2].inference->alpha, 0.06);
}

TEST(Override, WithoutIndexChangesEveryPhaseThatHasTheTable) {
  const Recipe recipe = with({"phase.inference.alpha=0.5", "phase.guard=skip"});
  EXPECT_FALSE(recipe.phases[0].inference);
  EXPECT_EQ(recipe.phases[1].inference->alpha, 0.5);
  EXPECT_EQ(recipe.phases[2].inference->alpha, 0.5);
  for (const auto& phase : recipe.phases) EXPECT_EQ(phase.guard.mode, GuardMode::skip);
}

TEST(Override, GivesAPhaseATableItLacks) {
  const Recipe recipe = with({"phase.0.inference.name=sg_mcmc", "phase.0.inference.rho=0.2"});
  EXPECT_EQ(recipe.phases[0].inference, (InferenceSettings{.name = "sg_mcmc", .rho = 0.2}));
  EXPECT_EQ(with({"phase.0.inference.rho=0.2"}).phases[0].inference,
            (InferenceSettings{.rho = 0.2}));
}

TEST(Override, ErrorsNameIt) {
  EXPECT_EQ(refusal("client.epoch=3"),
            "--set client.epoch=3: client.epoch is not a setting; did you mean client.epochs?");
  EXPECT_EQ(refusal("servr.optimizer.lr=3"),
            "--set servr.optimizer.lr=3: servr is not a setting; did you mean server?");
  EXPECT_EQ(refusal("server.optimizer.lr=-1"),
            "--set server.optimizer.lr=-1: server.optimizer.lr must be positive, but is -1");
  EXPECT_EQ(refusal("server.optimizer.lr=0.5x"),
            "--set server.optimizer.lr=0.5x: server.optimizer.lr must be a number, but is "
            "\"0.5x\"");
  EXPECT_EQ(refusal("phase.1.inference.alphaa=3"),
            "--set phase.1.inference.alphaa=3: phase.1.inference.alphaa is not a setting; did you "
            "mean phase.1.inference.alpha?");
  EXPECT_EQ(refusal("phase.inference.alpha=x"),
            "--set phase.inference.alpha=x: phase.1.inference.alpha must be a number, but is "
            "\"x\"");
}

TEST(Override, RefusesWhatCannotBeThere) {
  EXPECT_EQ(refusal("phase.3.rounds=1"),
            "--set phase.3.rounds=1: phase.3 does not exist, phases are 0 to 2");
  EXPECT_EQ(refusal("phase.99999999999999999999999.rounds=1"),
            "--set phase.99999999999999999999999.rounds=1: phase.99999999999999999999999 does not "
            "exist, phases are 0 to 2");
  EXPECT_EQ(refusal("phase.0=1"), "--set phase.0=1: phase.0 is a table; set its keys");
  EXPECT_EQ(refusal("phase.sampler.alpha=1"),
            "--set phase.sampler.alpha=1: no phase has a table sampler");
  EXPECT_EQ(refusal("server.prior.precision=1"),
            "--set server.prior.precision=1: server.prior is \"flat\", not a table");
  EXPECT_EQ(refusal("seed.x.y=1"), "--set seed.x.y=1: seed is 1, not a table");
}

TEST(Override, RefusesWhatIsNoOverride) {
  for (const std::string text :
       {"", "seed", "=1", "client..epochs=1", ".seed=1", "seed.=1", "a b=1", "\"seed\"=1"}) {
    const std::string message = refusal(text);
    EXPECT_EQ(message.find("--set "), 0u) << message;
    EXPECT_NE(message.find("expected section.key=value"), std::string::npos) << message;
  }
  EXPECT_EQ(refusal("seed="), "--set seed=: expected a value after =");
  EXPECT_EQ(refusal("data.path=\"open").find("--set data.path=\"open: the value is not TOML: "),
            0u);
}

TEST(Override, FindsNoPhaseWhereThereIsNone) {
  for (const std::string change : {"phase.0.rounds=1", "phase.rounds=1"}) {
    EXPECT_THROW((void)parse_recipe("phase = []\ndata.name = \"toy\"", "", {change}), InputError);
    EXPECT_THROW((void)parse_recipe("data.name = \"toy\"", "", {change}), InputError);
  }
}

TEST(Override, RefusesAKeyOrAValueThatNestsTooDeep) {
  std::string key = "a", value;
  for (int i = 0; i < 200'000; ++i) key += ".b";
  for (int i = 0; i < 200'000; ++i) value += "[";
  for (const std::string& text : {key + "=1", "data.features=" + value}) {
    const std::string message = refusal(text);
    EXPECT_NE(message.find("must nest at most 64 deep"), std::string::npos) << message;
    EXPECT_LT(message.size(), 400u);
  }
}

TEST(Override, CannotBringInASecondKey) {
  EXPECT_EQ(refusal("seed=1\ntable=2").find("--set \"seed=1?table=2\": expected"), 0u);
}

}  // namespace
}  // namespace fedep
