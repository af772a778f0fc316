#include "fedep/config/read_recipe.h"

#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "fedep/algorithm/algorithm.h"
#include "fedep/config/resolve.h"
#include "fedep/config/write_recipe.h"
#include "fedep/message/error.h"
#include "fedep/message/test_folder.h"

namespace fedep {
namespace {

// The complete sample of the design.
constexpr const char* kSample = R"(table = "table2"                 # only in the paper's recipes
row = "fed_ep_i"
seed = 1
[data]
name = "cifar100"
path = "cifar100"
partition = "given"
augment = true
[model]
name = "resnet18"
norm = "per_position"            # or group_norm
[client]
epochs = 10
batch = 20
remainder = "drop"               # or keep
optimizer = { name = "sgd", lr = 0.01, momentum = 0.9 }
weight_decay = 1e-4
[server]
clients_per_round = 20
prior = "flat"                   # or { mean = 0.0, precision = 1.0 }
damping = "1/K"
optimizer = { name = "sgd", lr = 0.5, momentum = 0.9 }
[[phase]]
algorithm = "fed_avg"
rounds = 401
[[phase]]
algorithm = "fed_ep"
rounds = 1099
clip = 100.0
guard = "count"
[phase.inference]
name = "scaled_identity"
alpha = 0.05
[evaluate]
every = 1
samples = 10
[checkpoint]
every = 100
)";

constexpr const char* kPhase = "[[phase]]\nalgorithm = \"fed_avg\"\nrounds = 2\n";

// A recipe with these lines in front of a data set and a phase.
std::string with(const std::string& lines) {
  return lines + "\n[data]\nname = \"synthetic\"\n" + kPhase;
}

std::string refusal(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return message_of<InputError>([&] { (void)parse_recipe(text, "recipe.toml", overrides); });
}

TEST(ReadRecipe, ReadsTheDesignsSample) {
  const Recipe recipe = parse_recipe(kSample);
  EXPECT_EQ(recipe.table, "table2");
  EXPECT_EQ(recipe.row, "fed_ep_i");
  EXPECT_EQ(recipe.seed, 1u);
  EXPECT_EQ(recipe.data,
            (DataSettings{
                .name = "cifar100", .path = "cifar100", .partition = "given", .augment = true}));
  EXPECT_EQ(recipe.model, (ModelSettings{.name = "resnet18", .norm = NormKind::per_position}));
  EXPECT_EQ(recipe.client, (ClientSettings{.epochs = 10,
                                           .batch = 20,
                                           .remainder = Remainder::drop,
                                           .optimizer = {.lr = 0.01, .momentum = 0.9},
                                           .weight_decay = 1e-4}));
  const OptimizerSettings server_optimizer{.lr = 0.5, .momentum = 0.9};
  EXPECT_EQ(recipe.server, (ServerSettings{.clients_per_round = 20,
                                           .prior = std::nullopt,
                                           .damping = {},
                                           .optimizer = server_optimizer,
                                           .factor_optimizer = server_optimizer}));
  ASSERT_EQ(recipe.phases.size(), 2u);
  EXPECT_EQ(recipe.phases[0], (PhaseSettings{.algorithm = "fed_avg",
                                             .rounds = 401,
                                             .cavity = CavityKind::flat,
                                             .weight = WeightRule::examples}));
  EXPECT_EQ(
      recipe.phases[1],
      (PhaseSettings{.algorithm = "fed_ep",
                     .rounds = 1099,
                     .cavity = CavityKind::own_factor,
                     .weight = WeightRule::equal,
                     .clip = 100,
                     .guard = {},
                     .inference = InferenceSettings{.name = "scaled_identity", .alpha = 0.05}}));
  EXPECT_EQ(recipe.evaluate, (EvaluateSettings{.every = 1, .samples = 10}));
  EXPECT_EQ(recipe.checkpoint, (CheckpointSettings{.every = 100}));
}

TEST(ReadRecipe, ReadsTheDesignsSampleAsWrittenOut) {
  const Recipe recipe = parse_recipe(kSample);
  EXPECT_EQ(parse_recipe(to_toml(recipe)), filled_in(recipe));
}

TEST(ReadRecipe, SuggestsTheKeyThatWasMeant) {
  EXPECT_EQ(refusal(with("seed = 1\n[client]\nepoch = 3")),
            "recipe.toml:3: client.epoch is not a setting; did you mean client.epochs?");
  EXPECT_EQ(refusal(with("[clinet]\nepochs = 3")),
            "recipe.toml:1: clinet is not a setting; did you mean client?");
  EXPECT_EQ(refusal(with("[client]\noptimizer = { lrr = 1 }")),
            "recipe.toml:2: client.optimizer.lrr is not a setting; did you mean "
            "client.optimizer.lr?");
  EXPECT_EQ(refusal(with("") + "[phase.inferense]\nalpha = 1"),
            "recipe.toml:7: phase.0.inferense is not a setting; did you mean phase.0.inference?");
}

TEST(ReadRecipe, ListsTheKeysWhenNoneIsNear) {
  EXPECT_EQ(refusal(with("[evaluate]\nbananas = 3")),
            "recipe.toml:2: evaluate.bananas is not a setting; known: every, samples, "
            "marginal_every, examples, calibrated_every");
}

TEST(ReadRecipe, ReportsTheFirstOfSeveralMisspeltKeys) {
  EXPECT_EQ(refusal(with("[client]\nzatch = 1\nbatchh = 2")).find("recipe.toml:2: client.zatch"),
            0u);
}

TEST(ReadRecipe, ReportsAMisspeltKeyRatherThanTheOneItLeavesMissing) {
  EXPECT_EQ(refusal("[data]\nname = \"toy\"\n[[phase]]\nalgorithm = \"fed_avg\"\nround = 2"),
            "recipe.toml:5: phase.0.round is not a setting; did you mean phase.0.rounds?");
}

TEST(ReadRecipe, RefusesTheWrongType) {
  EXPECT_EQ(refusal(with("[client]\nepochs = \"ten\"")),
            "recipe.toml:2: client.epochs must be an integer, but is \"ten\"");
  EXPECT_EQ(refusal(with("[client]\nepochs = 1.0")),
            "recipe.toml:2: client.epochs must be an integer, but is 1");
  EXPECT_EQ(refusal(with("[client]\nweight_decay = true")),
            "recipe.toml:2: client.weight_decay must be a number, but is true");
  EXPECT_EQ(refusal(with("table = 2")), "recipe.toml:1: table must be a string, but is 2");
  EXPECT_EQ(refusal(with("seed = [1]")), "recipe.toml:1: seed must be an integer, but is an array");
  EXPECT_EQ(refusal(with("client = 3")), "recipe.toml:1: client must be a table, but is 3");
  EXPECT_EQ(refusal(with("server = { damping_outside = 1 }")),
            "recipe.toml:1: server.damping_outside must be true or false, but is 1");
  EXPECT_EQ(refusal("[data]\nname = 1979-05-27\n"),
            "recipe.toml:2: data.name must be a string, but is a date or time");
}

using Names = std::vector<std::string>;

DataSettings data_with(const std::string& lines) {
  return parse_recipe("[data]\nname = \"tabular\"\n" + lines + "\n" + kPhase, "recipe.toml").data;
}

TEST(ReadRecipe, TakesAListAsAStringWithCommasOrAsAnArray) {
  for (const std::string list : {R"("age, b m i")", R"(" age,b m i ,,")", R"(["age", "b m i"])",
                                 "[\n  \"age\",\n  \"b m i\",\n]"}) {
    EXPECT_EQ(data_with("features = " + list).features, (Names{"age", "b m i"})) << list;
  }
  EXPECT_TRUE(data_with("features = \"\"").features.empty());
  EXPECT_TRUE(data_with("features = []").features.empty());
}

TEST(ReadRecipe, TakesItemsOfAnArrayAsTheyAre) {
  const DataSettings data = data_with(R"(features = ["weight, kg", " age "]
categories = ["a, b"]
missing = ["", "n, a"]
label_positive = ["yes, twice"]
label_negative = ["no, never"])");
  EXPECT_EQ(data.features, (Names{"weight, kg", " age "}));
  EXPECT_EQ(data.categories, (Names{"a, b"}));
  EXPECT_EQ(data.missing, (Names{"", "n, a"}));
  EXPECT_EQ(data.label_positive, (Names{"yes, twice"}));
  EXPECT_EQ(data.label_negative, (Names{"no, never"}));
}

TEST(ReadRecipe, RefusesAListOfTheWrongType) {
  const auto refused = [](const std::string& line) {
    return message_of<InputError>([&] { (void)data_with(line); });
  };
  EXPECT_EQ(refused("missing = -1"),
            "recipe.toml:3: data.missing must be a string or an array of strings, but is -1");
  EXPECT_EQ(refused("features = \" , \""),
            "recipe.toml:3: data.features must be names between commas, or empty, but is \" , \"");
  EXPECT_EQ(refused("missing = [\n  \"NA\",\n  -1]"),
            "recipe.toml:5: data.missing.1 must be a string, but is -1");
  EXPECT_EQ(refused("features = [[\"age\"]]"),
            "recipe.toml:3: data.features.0 must be a string, but is an array");
}

TEST(ReadRecipe, TakesClassesByNameAndByNumber) {
  const auto classes = [](const std::string& value) {
    return data_with("unseen_classes = " + value).unseen_classes;
  };
  EXPECT_EQ(classes("\"bear, 90\""), (Names{"bear", "90"}));
  EXPECT_EQ(classes("[\"bear\", 90, 0]"), (Names{"bear", "90", "0"}));
  EXPECT_EQ(classes("7"), (Names{"7"}));
  EXPECT_EQ(classes("[]"), Names{});
  const auto refused = [&](const std::string& value) {
    return message_of<InputError>([&] { (void)classes(value); });
  };
  EXPECT_EQ(refused("[1, -1]"),
            "recipe.toml:3: data.unseen_classes.1 must be at least 0, but is -1");
  EXPECT_EQ(refused("0.5"),
            "recipe.toml:3: data.unseen_classes must be a name or a whole number, but is 0.5");
}

TEST(ReadRecipe, TakesAnIntegerForAFloat) {
  EXPECT_EQ(parse_recipe(with("[client]\nweight_decay = 2")).client.weight_decay, 2.0);
}

TEST(ReadRecipe, RefusesWhatIsOutOfRange) {
  EXPECT_EQ(refusal(with("[client]\nepochs = 0")),
            "recipe.toml:2: client.epochs must be at least 1, but is 0");
  EXPECT_EQ(refusal(with("[server]\nprior = { precision = -1 }")),
            "recipe.toml:2: server.prior.precision must be positive, but is -1");
  EXPECT_EQ(refusal(with("[server.optimizer]\nlr = -0.5")),
            "recipe.toml:2: server.optimizer.lr must be positive, but is -0.5");
  EXPECT_EQ(refusal(with("[server.optimizer]\nmomentum = 1.0")),
            "recipe.toml:2: server.optimizer.momentum must be in [0, 1), but is 1");
  EXPECT_EQ(refusal(with("[server]\ngrid_bits = 16")),
            "recipe.toml:2: server.grid_bits must be 64 or 32, but is 16");
  EXPECT_EQ(refusal(with("[server]\ndamping = 0")),
            "recipe.toml:2: server.damping must be positive, but is 0");
  EXPECT_EQ(refusal(with("[model]\nnoise = 0")),
            "recipe.toml:2: model.noise must be positive, but is 0");
  EXPECT_EQ(refusal(with("[model]\nnoise = -2.5")),
            "recipe.toml:2: model.noise must be positive, but is -2.5");
  EXPECT_NE(refusal(with("[model]\nnoise = 1e-200")).find("noise must be in"), std::string::npos);
  EXPECT_NE(refusal(with("[model]\nnoise = 1e300")).find("noise must be in"), std::string::npos);
  EXPECT_EQ(refusal(with("[model]\nnoise = inf")),
            "recipe.toml:2: model.noise must be finite, but is inf");
  EXPECT_EQ(refusal(with("[server.optimizer]\nlr = nan")),
            "recipe.toml:2: server.optimizer.lr must be finite, but is nan");
  EXPECT_EQ(refusal(with("[server.optimizer]\nlr = inf")),
            "recipe.toml:2: server.optimizer.lr must be finite, but is inf");
  EXPECT_EQ(refusal(with("seed = -1")), "recipe.toml:1: seed must be at least 0, but is -1");
  EXPECT_EQ(refusal(with("[client]\nbatch = 4294967297")),
            "recipe.toml:2: client.batch must be at most 2147483647, but is 4294967297");
  EXPECT_EQ(refusal(with("") + "[[phase]]\nalgorithm = \"fed_ep\"\nrounds = -5"),
            "recipe.toml:9: phase.1.rounds must be at least 1, but is -5");
  EXPECT_EQ(refusal(with("") + "cooldown = { after = 1, rounds = 2, to = 1.5 }\n"),
            "recipe.toml:7: phase.0.cooldown.to must be in [0, 1], but is 1.5");
}

TEST(ReadRecipe, SuggestsTheWordThatWasMeant) {
  EXPECT_EQ(refusal(with("[client]\nremainder = \"dorp\"")),
            "recipe.toml:2: client.remainder must be drop or keep, but is \"dorp\"; did you mean "
            "drop?");
  EXPECT_EQ(refusal(with("") + "guard = \"backoff\""),
            "recipe.toml:7: phase.0.guard must be count, back_off, floor or skip, but is "
            "\"backoff\"; did you mean back_off?");
  EXPECT_EQ(refusal(with("[server]\ndamping = \"decay\"")),
            "recipe.toml:2: server.damping must be 1/K, none, decaying or a positive number, but "
            "is \"decay\"; did you mean decaying?");
  EXPECT_EQ(refusal(with("[server]\nprior = \"wide\"")),
            "recipe.toml:2: server.prior must be flat or { mean = …, precision = … }, but is "
            "\"wide\"");
  EXPECT_EQ(refusal(with("[client]\nremainder = 1")),
            "recipe.toml:2: client.remainder must be drop or keep, but is 1");
}

TEST(ReadRecipe, RefusesAnAlgorithmThatDoesNotExist) {
  EXPECT_EQ(refusal("[data]\nname = \"toy\"\n[[phase]]\nalgorithm = \"fed_epp\"\nrounds = 2")
                .find("recipe.toml:4: unknown algorithm fed_epp; did you mean fed_ep? known: "),
            0u);
}

TEST(ReadRecipe, RefusesWhatIsMissing) {
  EXPECT_EQ(refusal(""), "recipe.toml: data.name is missing");
  EXPECT_EQ(refusal(with("") + "cooldown = { after = 1 }\n"),
            "recipe.toml:7: phase.0.cooldown.rounds is missing");
  EXPECT_EQ(refusal("\n[data]\npath = \"x\"\n"), "recipe.toml:2: data.name is missing");
  EXPECT_EQ(refusal("data.name = \"\"\n"), "recipe.toml:1: data.name must be a name, but is \"\"");
  EXPECT_EQ(refusal("data.name = \"toy\"\n"), "recipe.toml: at least one [[phase]] is missing");
  EXPECT_EQ(refusal("phase = []\ndata.name = \"toy\"\n"),
            "recipe.toml:1: phase must be one or more [[phase]] tables, but is an array");
  EXPECT_EQ(refusal("data.name = \"toy\"\n[phase]\nrounds = 2"),
            "recipe.toml:2: phase must be one or more [[phase]] tables, but is a table");
  EXPECT_EQ(refusal("phase = [1]\ndata.name = \"toy\"\n"),
            "recipe.toml:1: phase.0 must be a table, but is 1");
  EXPECT_EQ(refusal("data.name = \"toy\"\n[[phase]]\nrounds = 2"),
            "recipe.toml:2: phase.0.algorithm is missing");
  EXPECT_EQ(refusal("data.name = \"toy\"\n\n[[phase]]\nalgorithm = \"fed_ep\""),
            "recipe.toml:3: phase.0.rounds is missing");
}

TEST(ReadRecipe, SaysWhereTheTomlIsWrong) {
  const std::string message = refusal("seed = 1\n[data\nname = 3");
  EXPECT_EQ(message.find("recipe.toml:2: "), 0u) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  EXPECT_EQ(refusal("seed = 1\nseed = 2\n").find("recipe.toml:2: "), 0u);
  EXPECT_EQ(refusal("seed = 99999999999999999999").find("recipe.toml:1: "), 0u);
}

TEST(ReadRecipe, ReadsEachDampingAndPrior) {
  const auto server = [](const std::string& line) {
    return parse_recipe(with("[server]\n" + line)).server;
  };
  EXPECT_EQ(server("damping = \"none\"").damping.rule, DampingRule::none);
  EXPECT_EQ(server("damping = \"decaying\"").damping.rule, DampingRule::decaying);
  EXPECT_EQ(server("damping = 0.5").damping,
            (DampingSettings{.rule = DampingRule::constant, .constant = 0.5}));
  EXPECT_EQ(server("damping_outside = true").damping, (DampingSettings{.outside = true}));
  EXPECT_EQ(server("prior = { precision = 4 }").prior, (PriorSettings{.precision = 4}));
  EXPECT_EQ(server("prior = {}").prior, PriorSettings{});
}

TEST(ReadRecipe, ReadsNoiseThatIsGivenOrEstimated) {
  const auto model = [](const std::string& line) {
    return parse_recipe(with("[model]\n" + line)).model;
  };
  EXPECT_EQ(model("noise = 5"), (ModelSettings{.noise = 5}));
  EXPECT_EQ(model("noise = \"estimated\""), (ModelSettings{.estimate_noise = true}));
  EXPECT_EQ(model("site_intercept = true"), (ModelSettings{.site_intercept = true}));
  for (const std::string wrong : {"\"guessed\"", "true", "-1", "[]"}) {
    EXPECT_NE(refusal(with("[model]\nnoise = " + wrong)).find("model.noise must be"),
              std::string::npos)
        << wrong;
  }
}

TEST(ReadRecipe, ReadsPriorsOfCoefficients) {
  const std::string text = with(R"([[prior]]
coefficient = "unit=*"
mean = 0.5
precision = 4
[[prior]]
coefficient = "age"
precision = 100.0
)");
  const std::vector<CoefficientPrior> expected{{"unit=*", 0.5, 4}, {"age", 0, 100}};
  EXPECT_EQ(parse_recipe(text).priors, expected);
  EXPECT_EQ(parse_recipe(text, "recipe.toml", {"prior.1.precision=9"}).priors[1].precision, 9);
  EXPECT_TRUE(parse_recipe(with("")).priors.empty());
  EXPECT_EQ(parse_recipe(with(""), "recipe.toml", {"prior=[{coefficient=\"age\"}]"}).priors,
            std::vector<CoefficientPrior>{{"age"}});
  EXPECT_EQ(refusal(with("[[prior]]\nprecision = 4\n")),
            "recipe.toml:1: prior.0.coefficient is missing");
  EXPECT_EQ(refusal(with("[prior]\ncoefficient = \"age\"\n")),
            "recipe.toml:1: prior must be [[prior]] tables, but is a table");
  EXPECT_EQ(refusal(text, {"prior.2.mean=1"}),
            "--set prior.2.mean=1: prior.2 does not exist, priors are 0 to 1");
  EXPECT_NE(refusal(with("[[prior]]\ncoefficient = \"age\"\nprecision = 0\n")).find("positive"),
            std::string::npos);
}

TEST(ReadRecipe, StartsTheFactorsOptimizerFromTheServers) {
  const Recipe recipe = parse_recipe(
      with("[server]\nfactor_optimizer.lr = 0.25\noptimizer = { lr = 0.5, momentum = 0.9 }"));
  EXPECT_EQ(recipe.server.factor_optimizer, (OptimizerSettings{.lr = 0.25, .momentum = 0.9}));
}

TEST(ReadRecipe, ReadsAFile) {
  const TemporaryFolder folder;
  const auto file = folder.write("recipe.toml", kSample);
  EXPECT_EQ(read_recipe(file, {"seed=5"}), parse_recipe(kSample, "", {"seed=5"}));
  folder.write("recipe.toml", "seed = 1\nsead = 2\n");
  EXPECT_EQ(message_of<InputError>([&] { (void)read_recipe(file); }),
            file.string() + ":2: sead is not a setting; did you mean seed?");
}

TEST(ReadRecipe, RefusesWhatNestsTooDeepBeforeItIsParsed) {
  std::string key = "a";
  for (int i = 0; i < 200'000; ++i) key += ".b";
  for (const std::string& text : {key + " = 1", "[" + key + "]", "[set]\n" + key + " = 1"}) {
    const std::string message = message_of<InputError>([&] { (void)parse_recipe(text); });
    EXPECT_NE(message.find("must nest at most 64 deep"), std::string::npos) << message;
    EXPECT_LT(message.size(), 400u);
  }
}

TEST(ReadRecipe, SaysOnOneLineWhatIsNoToml) {
  const std::string message = message_of<InputError>([&] { (void)parse_recipe("seed = in\nf\n"); });
  EXPECT_EQ(message.find("recipe:1: "), 0u) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
}

TEST(ReadRecipe, SaysWhyAFileCannotBeRead) {
  const auto why = [](const std::filesystem::path& file) {
    return message_of<InputError>([&] { (void)read_recipe(file); });
  };
  EXPECT_EQ(why("no/such.toml"), "no/such.toml: cannot read: No such file or directory");
  EXPECT_EQ(why("."), ".: cannot be read, it is a directory");
}

}  // namespace
}  // namespace fedep
