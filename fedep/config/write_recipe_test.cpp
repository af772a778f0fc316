#include "fedep/config/write_recipe.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "fedep/algorithm/algorithm.h"
#include "fedep/config/check_recipe.h"
#include "fedep/config/fields.h"
#include "fedep/config/read_recipe.h"
#include "fedep/config/resolve.h"
#include "fedep/message/error.h"
#include "fedep/message/test_folder.h"

namespace fedep {
namespace {

Recipe smallest() {
  Recipe recipe;
  recipe.data.name = "synthetic";
  recipe.phases.push_back({.algorithm = "fed_avg", .rounds = 3});
  return recipe;
}

// Moves every setting away from its default, to a value its rule allows.
struct Scrambler {
  void operator()(std::string_view, int& value, const Rule& rule) {
    value = rule.only.empty() ? value + 7 : rule.only.back();
  }
  void operator()(std::string_view, std::uint64_t& value, const Rule&) { value += 41; }
  void operator()(std::string_view, double& value, const Rule& rule = {}) {
    value = std::min(value / 3 + 0.1, rule.high);
  }
  void operator()(std::string_view, std::optional<std::uint64_t>& value, const Rule&) {
    value = 41;
  }
  void operator()(std::string_view, std::optional<double>& value, const Rule&) { value = 0.4; }
  void operator()(std::string_view, bool& value) { value = !value; }
  void operator()(std::string_view name, std::string& value, const Rule& rule = {}) {
    if (!rule.known) value = std::string(name) + " \"quoted\" \\ \t\n\x01 naïve";
  }
  void operator()(std::string_view name, std::vector<std::string>& items, const Rule& = {}) {
    items = {std::string(name), "with, \"comma\" \\ \n", " spaces ", ""};
  }
  template <Worded E>
  void operator()(std::string_view, E& value) {
    value = words_of(value).back().value == value ? words_of(value).front().value
                                                  : words_of(value).back().value;
  }
  template <Worded E>
  void operator()(std::string_view, std::optional<E>& value) {
    value = words_of(E{}).back().value;
  }
  void operator()(std::string_view, NoiseKey& noise, const Rule&) { noise.estimated = true; }
  void operator()(std::string_view, DampingSettings& damping, const Rule&) {
    damping.rule = DampingRule::constant;
    damping.constant = 0.3;
  }
  void operator()(std::string_view name, std::optional<DampingSettings>& damping,
                  const Rule& rule) {
    (*this)(name, damping.emplace(), rule);
  }
  void operator()(std::string_view, std::optional<bool>& value) { value = true; }
  template <Section S>
  void operator()(std::string_view, S& section) {
    list_fields(*this, section);
  }
  template <Section S>
  void operator()(std::string_view, std::optional<S>& section, const S& = {}) {
    section.emplace();
    list_fields(*this, *section);
  }
  template <Section S>
  void operator()(std::string_view, std::vector<S>& sections) {
    for (S& section : sections) list_fields(*this, section);
  }
};

TEST(WriteRecipe, ReadsBackAsTheSameRecipe) {
  const Recipe recipe = filled_in(smallest());
  EXPECT_EQ(parse_recipe(to_toml(recipe)), recipe);
}

TEST(WriteRecipe, ReadsBackEverySettingThatIsNotItsDefault) {
  Recipe recipe = smallest();
  recipe.phases.push_back({.algorithm = "fed_ep", .rounds = 2});
  recipe.priors.resize(2);
  Scrambler scrambler;
  list_fields(scrambler, recipe);
  ASSERT_NO_THROW(check_recipe(recipe));
  EXPECT_EQ(parse_recipe(to_toml(recipe)), recipe) << to_toml(recipe);
}

TEST(WriteRecipe, ReadsBackWhatDependsOnOtherSettingsResolved) {
  const Recipe recipe = smallest();
  ASSERT_NE(recipe, resolved(recipe));
  EXPECT_EQ(parse_recipe(to_toml(recipe)), filled_in(recipe));
}

TEST(WriteRecipe, GivesTheSameTextAgain) {
  const std::string text = to_toml(smallest());
  EXPECT_EQ(to_toml(parse_recipe(text)), text);
}

TEST(WriteRecipe, KeepsEveryBitOfAFloat) {
  using Limits = std::numeric_limits<double>;
  for (const double value :
       {0.1, 1.0 / 3, 1e-8, 1.0, 1e22, 123456789012345680.0, 9.999999999999999e23, Limits::min(),
        Limits::denorm_min(), Limits::epsilon()}) {
    Recipe recipe = resolved(smallest());
    recipe.client.weight_decay = value;
    EXPECT_EQ(parse_recipe(to_toml(recipe)).client.weight_decay, value);
  }
}

TEST(WriteRecipe, WritesAListAsAnArrayOnlyWhereItHasTo) {
  const auto written = [](const std::vector<std::string>& items) {
    Recipe recipe = filled_in(smallest());
    recipe.data.features = items;
    const std::string text = to_toml(recipe);
    EXPECT_EQ(parse_recipe(text), recipe) << text;
    const std::size_t begin = text.find("\nfeatures = ") + 12;
    return text.substr(begin, text.find('\n', begin) - begin);
  };
  EXPECT_EQ(written({}), R"("")");
  EXPECT_EQ(written({"age", "b m i"}), R"("age, b m i")");
  EXPECT_EQ(written({"age", "weight, kg"}), R"(["age", "weight, kg"])");
  EXPECT_EQ(written({" age"}), R"([" age"])");
  EXPECT_EQ(written({""}), R"([""])");
}

TEST(WriteRecipe, KeepsTheLargestSeed) {
  Recipe recipe = resolved(smallest());
  recipe.seed = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(parse_recipe(to_toml(recipe)).seed, recipe.seed);
}

TEST(WriteRecipe, KeepsEachDampingAndPrior) {
  for (const DampingRule rule :
       {DampingRule::one_over_k, DampingRule::none, DampingRule::decaying, DampingRule::constant}) {
    Recipe recipe = filled_in(smallest());
    recipe.server.damping.rule = rule;
    EXPECT_EQ(parse_recipe(to_toml(recipe)), recipe);
    recipe.phases[0].damping = DampingSettings{.rule = rule};
    recipe.phases[0].damping_outside = rule == DampingRule::none;
    EXPECT_EQ(parse_recipe(to_toml(recipe)), recipe);
    recipe.server.prior = PriorSettings{.mean = -1.5, .precision = 2};
    EXPECT_EQ(parse_recipe(to_toml(recipe)), recipe);
  }
}

// Recipes outlive programs: a key may be added here, but not go.
TEST(WriteRecipe, HasEveryKeyItEverHad) {
  using Names = std::vector<std::string_view>;
  EXPECT_EQ(names_of<Recipe>(), (Names{"table", "row", "seed", "data", "model", "client", "server",
                                       "prior", "phase", "evaluate", "checkpoint", "stop"}));
  EXPECT_EQ(names_of<DataSettings>(), (Names{"name",
                                             "path",
                                             "partition",
                                             "augment",
                                             "clients",
                                             "dimension",
                                             "examples",
                                             "tags",
                                             "alpha",
                                             "beta",
                                             "concentration",
                                             "partition_seed",
                                             "keep_clients",
                                             "min_examples",
                                             "max_examples",
                                             "test_fraction",
                                             "validation_fraction",
                                             "calibration_fraction",
                                             "unseen_classes",
                                             "client_column",
                                             "label_column",
                                             "label",
                                             "label_positive",
                                             "label_negative",
                                             "features",
                                             "categories",
                                             "missing",
                                             "reference",
                                             "interactions",
                                             "missing_indicators",
                                             "test_column",
                                             "exposure_column",
                                             "start_column",
                                             "stop_column",
                                             "intervals",
                                             "drop",
                                             "id_column",
                                             "group_column",
                                             "scale"}));
  EXPECT_EQ(names_of<ModelSettings>(),
            (Names{"name", "norm", "initial_scale", "noise", "site_intercept", "path"}));
  EXPECT_EQ(names_of<ClientSettings>(), (Names{"epochs", "batch", "remainder", "weight_decay",
                                               "loss_times_batch", "optimizer"}));
  EXPECT_EQ(names_of<ServerSettings>(),
            (Names{"clients_per_round", "prior", "damping", "damping_outside", "grid_bits",
                   "optimizer", "factor_optimizer"}));
  EXPECT_EQ(names_of<PriorSettings>(), (Names{"mean", "precision"}));
  EXPECT_EQ(names_of<OptimizerSettings>(),
            (Names{"name", "lr", "momentum", "beta1", "beta2", "epsilon", "epsilon_inside_root",
                   "initial_accumulator"}));
  EXPECT_EQ(names_of<PhaseSettings>(), (Names{"algorithm",
                                              "rounds",
                                              "cavity",
                                              "share",
                                              "mu",
                                              "penalty",
                                              "dual_rate",
                                              "temperature",
                                              "weight",
                                              "damping",
                                              "damping_outside",
                                              "clip",
                                              "guard",
                                              "guard_floor",
                                              "factors",
                                              "factor_clock",
                                              "optimizer_state",
                                              "optimizer",
                                              "hand_over",
                                              "cooldown",
                                              "schedule",
                                              "average",
                                              "curvature",
                                              "inference"}));
  EXPECT_EQ(names_of<ScheduleSettings>(),
            (Names{"visit_rate", "client_rate", "server_rate", "clip", "alpha"}));
  EXPECT_EQ(names_of<VisitSchedule>(), (Names{"kind", "from", "to", "steps"}));
  EXPECT_EQ(names_of<RoundSchedule>(), (Names{"kind", "after", "rounds", "from", "to", "steps"}));
  EXPECT_EQ(names_of<AverageSettings>(), (Names{"kind", "rounds"}));
  EXPECT_EQ(names_of<CooldownSettings>(), (Names{"after", "rounds", "to"}));
  EXPECT_EQ(names_of<InferenceSettings>(),
            (Names{"name", "family", "alpha", "scale", "initial_scale", "shrinkage", "epochs",
                   "samples", "decay", "clip_std", "rescale", "unbiased", "average_within_epoch",
                   "langevin", "rho", "mixin_epochs", "label_sampler"}));
  EXPECT_EQ(names_of<EvaluateSettings>(),
            (Names{"every", "samples", "marginal_every", "examples", "calibrated_every"}));
  EXPECT_EQ(names_of<CheckpointSettings>(), (Names{"every", "keep", "sites", "factors", "sparse"}));
}

TEST(WriteRecipe, WritesDefaultsOut) {
  const std::string text = to_toml(smallest());
  for (const char* part :
       {"seed = 1\n", "\n[data]\nname = \"synthetic\"\n", "\n[client.optimizer]\nname = \"sgd\"\n",
        "epsilon = 1e-05\n", "prior = \"flat\"\n", "damping = \"1/K\"\n", "grid_bits = 64\n",
        "\n[server.factor_optimizer]\n", "\n[[phase]]\nalgorithm = \"fed_avg\"\nrounds = 3\n",
        "cavity = \"flat\"\n", "weight = \"examples\"\n", "guard = \"count\"\n", "lr = 1.0\n"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "in\n" << text;
  }
}

TEST(Resolved, TakesCavityAndWeightFromTheAlgorithm) {
  for (const Algorithm& algorithm : algorithms()) {
    Recipe recipe = smallest();
    recipe.phases[0].algorithm = algorithm.name;
    const PhaseSettings phase = resolved(recipe).phases[0];
    EXPECT_EQ(phase.cavity, algorithm.cavity);
    EXPECT_EQ(phase.weight, algorithm.weight);
  }
}

TEST(Resolved, WritesOutTheInferenceOfAnAlgorithmThatSamples) {
  for (const Algorithm& algorithm : algorithms()) {
    Recipe recipe = smallest();
    recipe.phases[0].algorithm = algorithm.name;
    const bool samples = algorithm.needs == Needs::samples;
    EXPECT_EQ(resolved(recipe).phases[0].inference.has_value(), samples) << algorithm.name;
    EXPECT_EQ(to_toml(recipe).find("mixin_epochs = 1\n") != std::string::npos, samples);
    EXPECT_EQ(parse_recipe(to_toml(recipe)), filled_in(recipe));
  }
}

TEST(Resolved, TakesTheFactorsOptimizerFromTheServer) {
  Recipe recipe = smallest();
  recipe.server.optimizer = {.name = "adagrad", .lr = 5.0};
  EXPECT_EQ(resolved(recipe).server.factor_optimizer, recipe.server.optimizer);
}

TEST(Resolved, LeavesWhatIsGiven) {
  Recipe recipe = smallest();
  recipe.phases[0].cavity = CavityKind::whole;
  recipe.phases[0].weight = WeightRule::equal;
  recipe.server.factor_optimizer = OptimizerSettings{.lr = 0.25};
  EXPECT_EQ(resolved(recipe), recipe);
}

TEST(FactorStart, IsFlatInAFirstPhaseWithAProperPriorUnlessThePhaseSaysOtherwise) {
  for (const Algorithm& algorithm : algorithms()) {
    for (const bool proper : {false, true}) {
      Recipe recipe = smallest();
      recipe.phases[0].algorithm = algorithm.name;
      recipe.phases.push_back({.algorithm = "fed_ep", .rounds = 2});
      if (proper) recipe.server.prior.emplace();
      const bool flat = proper && !algorithm.point_estimate;
      EXPECT_EQ(factor_start(recipe, 0), flat ? FactorStart::flat : FactorStart::carry_mean);
      EXPECT_EQ(factor_start(recipe, 1), FactorStart::carry_mean);
      for (const FactorStart given : {FactorStart::flat, FactorStart::carry_mean}) {
        recipe.phases[0].factors = recipe.phases[1].factors = given;
        EXPECT_EQ(factor_start(recipe, 0), given);
        EXPECT_EQ(factor_start(recipe, 1), given);
      }
    }
  }
}

TEST(FactorStart, StaysOpenUntilARecipeIsWritten) {
  Recipe recipe = smallest();
  recipe.phases[0].algorithm = "fed_ep";
  recipe.server.prior.emplace();
  EXPECT_FALSE(resolved(recipe).phases[0].factors);
  EXPECT_EQ(filled_in(recipe).phases[0].factors, FactorStart::flat);
  EXPECT_EQ(parse_recipe(to_toml(recipe)).phases[0].factors, FactorStart::flat);
}

TEST(FactorStart, IsThatOfTheRunThatGoesOnWhereARecipeLeavesItOpen) {
  Recipe given = smallest();
  given.phases[0].algorithm = "fed_ep";
  given.phases.push_back(given.phases[0]);
  given.server.prior.emplace();
  Recipe there = given;
  there.phases.pop_back();
  there.phases[0].factors = FactorStart::carry_mean;  // the default of a version before
  const Recipe on = with_factor_starts_of(there, given);
  EXPECT_EQ(on.phases[0].factors, FactorStart::carry_mean);
  EXPECT_FALSE(on.phases[1].factors);  // a phase that the run did not have
  given.phases[0].factors = FactorStart::flat;
  EXPECT_EQ(with_factor_starts_of(there, given), given);
}

TEST(Resolved, ChecksARecipeFromCodeAsOneThatIsRead) {
  Recipe recipe = smallest();
  recipe.client.epochs = 0;
  const std::string message = message_of<InputError>([&] { (void)resolved(recipe); });
  EXPECT_EQ(message, "client.epochs must be at least 1, but is 0");
  EXPECT_EQ(message_of<InputError>([&] {
              (void)parse_recipe(to_toml(recipe), "read.toml");
            }).find("client.epochs must be at least 1, but is 0"),
            std::string("read.toml:40: ").size());
}

std::string refusal(const Recipe& recipe) {
  return message_of<InputError>([&] { check_recipe(recipe); });
}

TEST(CheckRecipe, AcceptsDefaults) { EXPECT_EQ(refusal(smallest()), ""); }

TEST(CheckRecipe, NamesTheSettingWhatWasExpectedAndWhatCame) {
  Recipe recipe = smallest();
  recipe.client.epochs = 0;
  EXPECT_EQ(refusal(recipe), "client.epochs must be at least 1, but is 0");
  recipe = smallest();
  recipe.server.prior = PriorSettings{.precision = -1};
  EXPECT_EQ(refusal(recipe), "server.prior.precision must be positive, but is -1");
  recipe = smallest();
  recipe.server.damping = {.rule = DampingRule::constant, .constant = 0};
  EXPECT_EQ(refusal(recipe), "server.damping must be positive, but is 0");
  recipe = smallest();
  recipe.phases[0].inference = InferenceSettings{.name = "laplace", .shrinkage = 1.5};
  EXPECT_EQ(refusal(recipe), "phase.0.inference.shrinkage must be in [0, 1], but is 1.5");
  recipe = smallest();
  recipe.server.optimizer.lr = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(refusal(recipe), "server.optimizer.lr must be finite, but is nan");
}

TEST(CheckRecipe, RefusesWhatTomlCannotHold) {
  Recipe recipe = smallest();
  recipe.seed = std::uint64_t(1) << 63;
  EXPECT_EQ(refusal(recipe),
            "seed must be at most 9223372036854775807, but is 9223372036854775808");
}

TEST(CheckRecipe, RefusesWhatIsMissing) {
  Recipe recipe = smallest();
  recipe.data.name.clear();
  EXPECT_EQ(refusal(recipe), "data.name is missing");
  recipe = smallest();
  recipe.phases.clear();
  EXPECT_EQ(refusal(recipe), "a recipe needs at least one phase, but has none");
  recipe = smallest();
  recipe.phases[0].algorithm = "fed_epp";
  EXPECT_EQ(
      refusal(recipe).find("phase.0.algorithm: unknown algorithm fed_epp; did you mean fed_ep?"),
      0u);
}

}  // namespace
}  // namespace fedep
