#include "fedep/config/extend.h"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "fedep/config/read_recipe.h"
#include "fedep/config/resolve.h"
#include "fedep/config/write_recipe.h"
#include "fedep/message/error.h"
#include "fedep/message/test_folder.h"

namespace fedep {
namespace {

constexpr const char* kBase = R"(table = "table2"
seed = 4
[data]
name = "synthetic"
clients = 9
[server]
clients_per_round = 5
optimizer = { name = "sgd", lr = 0.5, momentum = 0.9 }
[[phase]]
algorithm = "fed_avg"
rounds = 4
[[phase]]
algorithm = "fed_sep"
rounds = 6
[phase.inference]
name = "laplace"
alpha = 0.05
)";

class Extends : public testing::Test {
 protected:
  Extends() { folder_.write("base.toml", kBase); }

  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }
  // A recipe with these lines, after the line that it extends the base.
  Recipe child(const std::string& lines, const std::vector<std::string>& overrides = {}) const {
    return read_recipe(folder_.write("child.toml", "extends = \"base.toml\"\n" + lines), overrides);
  }
  std::string refusal(const std::string& name) const {
    return message_of<InputError>([&] { (void)read_recipe(path(name)); });
  }
  std::string child_refusal(const std::string& lines) const {
    folder_.write("child.toml", "extends = \"base.toml\"\n" + lines);
    return refusal("child.toml");
  }

  TemporaryFolder folder_;
};

TEST_F(Extends, ABaseAloneIsItself) { EXPECT_EQ(child(""), parse_recipe(kBase)); }

TEST_F(Extends, IsTheRecipeWrittenOutByHand) {
  const Recipe flat = parse_recipe(R"(table = "table2"
row = "fed_ep_l"
seed = 4
[data]
name = "synthetic"
clients = 9
augment = true
[client]
epochs = 3
[server]
clients_per_round = 7
optimizer = { name = "sgd", lr = 0.25, momentum = 0.9 }
[[phase]]
algorithm = "fed_avg"
rounds = 4
[[phase]]
algorithm = "fed_ep"
rounds = 6
clip = 300
[phase.inference]
name = "laplace"
alpha = 0.0625
)");
  EXPECT_EQ(child(R"(row = "fed_ep_l"
[data]
augment = true
[client]
epochs = 3
[server]
clients_per_round = 7
[server.optimizer]
lr = 0.25
[set]
"phase.1.algorithm" = "fed_ep"
"phase.1.clip" = 300
"phase.inference.alpha" = 0.0625
)"),
            flat);
}

TEST_F(Extends, AChainIsOneMergeAfterAnother) {
  const std::string middle =
      "seed = 5\n[server]\nclients_per_round = 3\noptimizer = { lr = 0.1 }\n"
      "[set]\nphase.1.clip = 2\nclient.epochs = 8\n";
  const std::string last =
      "row = \"third\"\n[server.optimizer]\nmomentum = 0.5\n[client]\nepochs = 9\n"
      "[set]\nphase.1.rounds = 11\n";
  folder_.write("in/between/middle.toml", "extends = \"../../base.toml\"\n" + middle);
  const auto chained = folder_.write("in/last.toml", "extends = \"between/middle.toml\"\n" + last);
  folder_.write("base.toml", to_toml(child(middle)));  // the first merge, written out
  folder_.write("in/between/middle.toml", "extends = \"../../base.toml\"\n");
  const Recipe stepwise = read_recipe(chained);
  folder_.write("base.toml", kBase);
  folder_.write("in/between/middle.toml", "extends = \"../../base.toml\"\n" + middle);
  Recipe whole = read_recipe(chained);
  EXPECT_EQ(whole.client.epochs, 9);  // what a base sets is no more than what it says
  EXPECT_EQ(whole.server.optimizer, (OptimizerSettings{.lr = 0.1, .momentum = 0.5}));
  EXPECT_EQ(whole.phases[1].clip, 2);
  EXPECT_EQ(whole.phases[1].rounds, 11);
  // Written out, the base says the factors' optimizer too, which the last recipe does not change.
  whole.server.factor_optimizer = stepwise.server.factor_optimizer;
  EXPECT_EQ(filled_in(whole), filled_in(stepwise));
}

TEST_F(Extends, AListReplacesTheBases) {
  const Recipe recipe =
      child("[[phase]]\nalgorithm = \"fed_avg\"\nrounds = 20\n[data]\nfeatures = [\"a\", \"b\"]\n");
  ASSERT_EQ(recipe.phases.size(), 1u);
  EXPECT_EQ(recipe.phases[0].rounds, 20);
  folder_.write("base.toml", std::string(kBase) + "[model]\nname = \"cnn\"\n");
  folder_.write("listed.toml", "extends = \"child.toml\"\n[data]\nfeatures = [\"c\"]\n");
  EXPECT_EQ(read_recipe(path("listed.toml")).data.features, std::vector<std::string>{"c"});
}

TEST_F(Extends, ATableTakesThePlaceOfAWordAndAWordOfATable) {
  EXPECT_EQ(child("[server]\nprior = { precision = 2 }\n").server.prior,
            PriorSettings{.precision = 2});
  folder_.write("flat.toml", "extends = \"child.toml\"\nserver.prior = \"flat\"\n");
  EXPECT_FALSE(read_recipe(path("flat.toml")).server.prior);
}

TEST_F(Extends, OverridesComeLast) {
  EXPECT_EQ(child("[set]\nseed = 6\n", {"seed=7", "phase.1.rounds=8"}).seed, 7u);
  EXPECT_EQ(child("seed = 5\n").seed, 5u);
}

TEST_F(Extends, WhatIsWrittenOutExtendsNothing) {
  const std::string text = to_toml(child("[set]\nphase.1.clip = 2\n"));
  EXPECT_EQ(text.find("extends"), std::string::npos);
  EXPECT_EQ(parse_recipe(text), filled_in(child("[set]\nphase.1.clip = 2\n")));
}

TEST_F(Extends, AMissingBaseNamesBothFiles) {
  folder_.write("sub/child.toml", "seed = 1\nextends = \"no/such.toml\"\n");
  EXPECT_EQ(refusal("sub/child.toml"), path("sub/child.toml") + ":2: extends " +
                                           path("sub/no/such.toml") +
                                           ": cannot read: No such file or directory");
  folder_.write("child.toml", "extends = \"sub\"\n");
  EXPECT_EQ(refusal("child.toml"), path("child.toml") + ":1: extends " + path("sub") +
                                       ": cannot be read, it is a directory");
}

TEST_F(Extends, ACircleIsRefusedWithItsFiles) {
  folder_.write("a.toml", "extends = \"b.toml\"\n");
  folder_.write("b.toml", "extends = \"sub/../c.toml\"\n");
  folder_.write("c.toml", "extends = \"./b.toml\"\n");
  EXPECT_EQ(refusal("a.toml"), fmt::format("{0}:1: extends {1}, which leads back to itself: {1} -> "
                                           "{0} -> {1}",
                                           path("c.toml"), path("b.toml")));
  folder_.write("self.toml", "extends = \"self.toml\"\n");
  EXPECT_EQ(
      refusal("self.toml"),
      fmt::format("{0}:1: extends {0}, which leads back to itself: {0} -> {0}", path("self.toml")));
}

TEST_F(Extends, AChainOfThirtyTwoFilesIsTheLongest) {
  const auto write_chain = [&](int files) {
    for (int i = 1; i < files; ++i) {
      const std::string next = i + 1 < files ? fmt::format("{}.toml", i + 1) : "base.toml";
      folder_.write(fmt::format("{}.toml", i), fmt::format("extends = \"{}\"\n", next));
    }
  };
  write_chain(32);
  EXPECT_EQ(read_recipe(path("1.toml")), parse_recipe(kBase));
  write_chain(33);
  EXPECT_NE(refusal("1.toml").find("at most 32 files may extend one another"), std::string::npos);
}

TEST_F(Extends, ErrorsNameTheFileThatHasTheMistake) {
  folder_.write("wrong.toml", "[client]\nepochs = \"ten\"\n");
  folder_.write("child.toml", "extends = \"wrong.toml\"\n" + std::string(kBase));
  EXPECT_EQ(refusal("child.toml"),
            path("wrong.toml") + ":2: client.epochs must be an integer, but is \"ten\"");
  folder_.write("wrong.toml", "[client\n");
  EXPECT_EQ(refusal("child.toml").find(path("wrong.toml") + ":"), 0u);
  EXPECT_EQ(child_refusal("[client]\nepoch = 3\n"),
            path("child.toml") + ":3: client.epoch is not a setting; did you mean client.epochs?");
  folder_.write("empty.toml", "");
  folder_.write("child.toml", "extends = \"empty.toml\"\n");
  EXPECT_EQ(refusal("child.toml"), path("child.toml") + ": data.name is missing");
}

TEST_F(Extends, ExtendsIsTheNameOfAFile) {
  folder_.write("child.toml", "extends = 3\n");
  EXPECT_EQ(refusal("child.toml"),
            path("child.toml") + ":1: extends must be the name of a file, but is 3");
  folder_.write("child.toml", "extends = \"\"\n");
  EXPECT_EQ(refusal("child.toml"),
            path("child.toml") + ":1: extends must be the name of a file, but is \"\"");
  folder_.write("child.toml", "extend = \"base.toml\"\n");
  EXPECT_EQ(refusal("child.toml"),
            path("child.toml") + ":1: extend is not a setting; did you mean extends?");
}

TEST_F(Extends, ATextHasNone) {
  EXPECT_EQ(message_of<InputError>([] { (void)parse_recipe("extends = \"base.toml\"\n"); }),
            "recipe:1: extends is for recipes in files, but this one is text");
}

TEST_F(Extends, ATableOfPhasesIsRefusedWithWhatWasMeant) {
  EXPECT_EQ(child_refusal("[phase.inference]\nalpha = 0.1\n"),
            path("child.toml") +
                ":2: phase must be one or more [[phase]] tables, which replace the base's, but is "
                "a table; [set] changes a key of the base's, as in phase.1.clip = 300");
}

TEST_F(Extends, SetTakesEveryFormOfAKey) {
  const Recipe quoted = child("[set]\n\"phase.1.inference.alpha\" = 0.3\n\"phase.1.clip\" = 2\n");
  EXPECT_EQ(quoted.phases[1].inference->alpha, 0.3);
  for (const std::string same :
       {"[set]\nphase.1.inference.alpha = 0.3\nphase.1.clip = 2\n",
        "[set.phase.1]\nclip = 2\n[set.phase.1.inference]\nalpha = 0.3\n",
        "[set]\nphase.\"1\".clip = 2\n\"phase.inference.alpha\" = 0.3\n",
        "set = { \"phase.1.clip\" = 2, phase.1.inference.alpha = 0.3 }\n"}) {
    EXPECT_EQ(child(same), quoted) << same;
  }
}

TEST_F(Extends, SetIsAppliedLineByLine) {
  EXPECT_EQ(child("[set]\n\"phase.clip\" = 1\n\"phase.1.clip\" = 2\n").phases[1].clip, 2);
  EXPECT_EQ(child("[set]\n\"phase.1.clip\" = 2\n\"phase.clip\" = 1\n").phases[1].clip, 1);
}

TEST_F(Extends, SetIsWhatTheSameOverridesAre) {
  const Recipe base = child("");
  const auto with = [&](const std::string& change) {
    return read_recipe(path("base.toml"), {change});
  };
  for (const auto& [line, change] : std::vector<std::pair<std::string, std::string>>{
           {"client.optimizer.lr = 0.1", "client.optimizer.lr=0.1"},
           {"client.weight_decay = 1e-8", "client.weight_decay=1e-8"},
           {"client.weight_decay = 0.3333333333333333", "client.weight_decay=0.3333333333333333"},
           {"client.weight_decay = 4.9406564584124654e-324", "client.weight_decay=5e-324"},
           {"data.path = 'a \"b\" \\ é'", "data.path='a \"b\" \\ é'"},
           {"data.features = [\"a, b\", \"c\"]", "data.features=[\"a, b\", \"c\"]"},
           {"server.prior = { mean = 0.0, precision = 2 }", "server.prior={precision=2}"},
           {"server.damping = \"1/K\"", "server.damping=1/K"},
           {"data.augment = true", "data.augment=true"},
           {"seed = 9223372036854775807", "seed=9223372036854775807"}}) {
    const Recipe set = child("[set]\n" + line + "\n");
    EXPECT_EQ(set, with(change)) << line;
  }
  EXPECT_NE(base, with("seed=9223372036854775807"));
  for (const std::string source : {"recipe.toml", ""}) {
    EXPECT_EQ(parse_recipe(std::string(kBase) + "[set]\nseed = 3\n", source), with("seed=3"));
  }
}

TEST_F(Extends, MistakesInSetAreNamedAsThoseOfOverrides) {
  const std::string file = path("child.toml");
  EXPECT_EQ(child_refusal("[set]\n\n\"phase.1.clipp\" = 300\n"),
            file + ":4: phase.1.clipp is not a setting; did you mean phase.1.clip?");
  EXPECT_EQ(child_refusal("[set]\nphase.7.clip = 300\n"),
            file + ":3: phase.7 does not exist, phases are 0 to 1");
  EXPECT_EQ(child_refusal("[set]\n\"a b\" = 300\n"),
            file + ":3: expected a key such as phase.1.clip");
  EXPECT_EQ(child_refusal("[set]\n\"seed=3\" = 300\n"),
            file + ":3: expected a key such as phase.1.clip");
  EXPECT_EQ(child_refusal("[set]\nextends = \"x.toml\"\n"),
            file + ":3: extends is no setting but a part of a recipe's file");
  EXPECT_EQ(child_refusal("set = 3\n"), file + ":2: set must be a table, but is 3");
  folder_.write("base.toml", std::string(kBase) + "[set]\nphase.clip = -1\n");
  EXPECT_EQ(child_refusal("").find(path("base.toml") + ":19: phase.0.clip must be at least 0"), 0u);
}

}  // namespace
}  // namespace fedep
