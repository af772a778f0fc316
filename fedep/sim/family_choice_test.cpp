#include "fedep/sim/family_choice.h"

#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "fedep/config/resolve.h"
#include "fedep/data/test_files.h"
#include "fedep/message/error.h"
#include "fedep/round/phase.h"

namespace fedep {
namespace {

// A table of two wards with so many columns beside the outcome.
std::string table_of(int columns) {
  std::string text = "ward,died";
  for (int j = 0; j < columns; ++j) text += ",x" + std::to_string(j);
  for (int i = 0; i < 12; ++i) {
    text += std::string("\n") + "AB"[i % 2] + "," + (i % 3 == 0 ? "1" : "0");
    for (int j = 0; j < columns; ++j) text += "," + std::to_string((i * 7 + j * 3) % 11);
  }
  return text + "\n";
}

class FamilyChoices : public testing::Test {
 protected:
  Recipe table_recipe(int columns = 3) {
    folder_.write("wards.csv", table_of(columns));
    Recipe recipe;
    recipe.data = {.name = "tabular", .path = "wards.csv"};
    recipe.data.client_column = "ward";
    recipe.data.label_column = "died";
    recipe.server.clients_per_round = 2;
    recipe.server.prior = PriorSettings{};
    recipe.phases = {{.algorithm = "fed_ep", .rounds = 2}};
    return resolved(recipe);
  }
  FamilyDecision decided(const Recipe& recipe) {
    return decide_families(recipe, *make_task(recipe, folder_.path()));
  }
  std::string reason(const Recipe& recipe) { return decided(recipe).reasons.at(0); }
  std::string refusal(const Recipe& recipe) {
    return message_of<InputError>([&] { decided(recipe); });
  }

  TemporaryFolder folder_;
};

InferenceSettings named(const char* name, FamilyChoice family = FamilyChoice::automatic) {
  return {.name = name, .family = family};
}

TEST_F(FamilyChoices, ATableWithAProperPriorNeedsNothingElse) {
  const FamilyDecision decision = decided(table_recipe());
  EXPECT_EQ(decision.recipe.phases[0].inference, named("quadrature", FamilyChoice::full));
  EXPECT_EQ(decision.reasons,
            std::vector<std::string>{"phase.0 (fed_ep): family full, by quadrature"});
  // What is decided stays so.
  EXPECT_EQ(decided(decision.recipe).recipe, decision.recipe);
}

TEST_F(FamilyChoices, NumbersAndCountsAreOutcomesOfATableToo) {
  for (const LabelKind label : {LabelKind::yes_no, LabelKind::number, LabelKind::count}) {
    Recipe recipe = table_recipe();
    recipe.data.label = label;
    EXPECT_EQ(reason(recipe), "phase.0 (fed_ep): family full, by quadrature");
  }
}

TEST_F(FamilyChoices, AMethodThatHasBothFamiliesIsFullTooAndOthersKeepTheirs) {
  Recipe recipe = table_recipe();
  recipe.phases[0].inference = named("laplace");
  EXPECT_EQ(decided(recipe).recipe.phases[0].inference, named("laplace", FamilyChoice::full));
  recipe.phases[0].inference->scale = 500;
  EXPECT_EQ(reason(recipe),
            "phase.0 (fed_ep): the family that laplace has, because laplace has scale 500, not 1");
  EXPECT_EQ(decided(recipe).recipe, recipe);
  recipe.phases[0].inference = named("scaled_identity");
  EXPECT_EQ(decided(recipe).recipe, recipe);
}

TEST_F(FamilyChoices, WhatStandsInItsWayIsNamed) {
  const auto because = [&](const std::function<void(Recipe&)>& change) {
    Recipe recipe = table_recipe();
    recipe.phases[0].inference = named("laplace");
    change(recipe);
    EXPECT_EQ(decided(recipe).recipe, recipe);
    const std::string text = reason(recipe);
    return text.substr(text.find("because ") + 8);
  };
  EXPECT_EQ(because([](Recipe& r) { r.server.prior.reset(); }), "server.prior is flat");
  EXPECT_EQ(because([](Recipe& r) { r.server.grid_bits = 32; }), "server.grid_bits is 32, not 64");
  EXPECT_EQ(because([](Recipe& r) { r.server.optimizer.momentum = 0.9; }),
            "server.optimizer has momentum 0.9");
  EXPECT_EQ(because([](Recipe& r) { r.data.label = LabelKind::classes; }),
            "the outcome is not yes or no, a number or a count");
  EXPECT_EQ(
      because([](Recipe& r) { r.data = {.name = "regression", .clients = 2, .dimension = 3}; }),
      "data regression are no table");
  EXPECT_EQ(because([](Recipe& r) {
              r.data = {.name = "random_images", .partition = "iid", .clients = 2, .examples = 4};
              r.model.name = "resnet_small";
            }),
            "model.name is resnet_small, not linear");
}

TEST_F(FamilyChoices, FiveHundredWeightsAreFullUnaskedAndTwoThousandIfAskedFor) {
  EXPECT_EQ(reason(table_recipe(499)), "phase.0 (fed_ep): family full, by quadrature");
  EXPECT_EQ(refusal(table_recipe(500)),
            "phase.0.inference.name is missing: fed_ep needs one, because the model has 501 "
            "weights, more than 500");
  Recipe recipe = table_recipe(500);
  recipe.phases[0].inference = named("", FamilyChoice::full);
  EXPECT_EQ(reason(recipe), "phase.0 (fed_ep): family full, as asked, by quadrature");
  recipe.phases[0].inference = named("quadrature");  // which has no other
  EXPECT_EQ(reason(recipe), "phase.0 (fed_ep): family full, as asked, by quadrature");
  recipe.data = {.name = "regression", .clients = 2, .dimension = 2000, .examples = 2};
  EXPECT_EQ(
      refusal(recipe),
      "phase.0.inference.family: full cannot be had, because the model has 2001 weights, more "
      "than 2000");
  recipe.data.dimension = 1999;
  EXPECT_EQ(refusal(recipe), "");
}

TEST_F(FamilyChoices, WhatIsAskedForIsHadOrRefused) {
  Recipe recipe = table_recipe();
  recipe.phases[0].inference = named("laplace", FamilyChoice::diagonal);
  EXPECT_EQ(decided(recipe).recipe, recipe);
  recipe.phases[0].inference = named("quadrature", FamilyChoice::diagonal);
  EXPECT_EQ(refusal(recipe),
            "phase.0.inference.family must be full with quadrature, but is diagonal");
  recipe.phases[0].inference = named("scaled_identity", FamilyChoice::full);
  EXPECT_EQ(refusal(recipe),
            "phase.0.inference.family: full cannot be had, because scaled_identity has no full "
            "precision");
  recipe.phases[0].inference = named("laplace", FamilyChoice::full);
  recipe.phases[0].inference->scale = 2;
  EXPECT_EQ(refusal(recipe),
            "phase.0.inference.family: full cannot be had, because laplace has scale 2, not 1");
  recipe.phases[0].inference = named("quadrature");
  recipe.server.prior.reset();
  EXPECT_EQ(refusal(recipe),
            "phase.0.inference.family: full cannot be had, because server.prior is flat");
}

TEST_F(FamilyChoices, ClassesAreFullByLaplaceWhereThatIsAskedFor) {
  Recipe recipe = table_recipe();
  recipe.data.label = LabelKind::classes;
  recipe.phases[0].inference = named("laplace", FamilyChoice::full);
  EXPECT_EQ(reason(recipe), "phase.0 (fed_ep): family full, as asked, by laplace");
  recipe.phases[0].inference->scale = 2;
  EXPECT_EQ(refusal(recipe),
            "phase.0.inference.family: full cannot be had, because laplace has scale 2, not 1");
  for (const char* name : {"", "quadrature", "hmc", "ngvi"}) {
    recipe.phases[0].inference = named(name, FamilyChoice::full);
    EXPECT_EQ(refusal(recipe),
              std::string("phase.0.inference.family: full cannot be had, because ") +
                  (*name == '\0' ? "quadrature" : name) +
                  " has none for classes; name = \"laplace\" has");
  }
  recipe.phases[0].inference = named("laplace", FamilyChoice::full);
  recipe.data = {.name = "synthetic", .clients = 3};
  EXPECT_EQ(reason(recipe), "phase.0 (fed_ep): family full, as asked, by laplace");
}

TEST_F(FamilyChoices, StepsOnDrawsFallUnlessTheRecipeSaysHow) {
  Recipe recipe = table_recipe();
  recipe.phases[0].rounds = 40;
  recipe.phases[0].inference = named("hmc");
  const CooldownSettings falling{.after = 20, .rounds = 10, .to = 0.1};
  const Recipe decision = decided(recipe).recipe;
  EXPECT_EQ(decision.phases[0].cooldown, falling);
  EXPECT_EQ(
      reason(recipe),
      "phase.0 (fed_ep): family full, as asked, by hmc, steps falling to 0.1 from its round 20 "
      "on");
  EXPECT_EQ(decided(decision).recipe, decision);
  // A run that goes on for longer keeps what it began with, also where its family is asked for.
  Recipe longer = recipe;
  longer.phases[0].rounds = 80;
  for (const FamilyChoice family : {FamilyChoice::automatic, FamilyChoice::full}) {
    longer.phases[0].inference->family = family;
    const Recipe again = decided_as_before(decision, longer, decided(longer).recipe);
    EXPECT_EQ(again.phases[0].cooldown, falling);
  }
  // What the recipe says stays.
  const CooldownSettings own{.after = 3, .rounds = 5, .to = 0.5};
  recipe.phases[0].cooldown = own;
  EXPECT_EQ(decided(recipe).recipe.phases[0].cooldown, own);
  recipe.phases[0].cooldown.reset();
  recipe.phases[0].schedule.emplace().server_rate.emplace();
  EXPECT_EQ(decided(recipe).recipe.phases[0].cooldown, std::nullopt);
  // Methods that do not draw have none.
  recipe = table_recipe();
  recipe.phases[0].inference = named("laplace");
  EXPECT_EQ(decided(recipe).recipe.phases[0].cooldown, std::nullopt);
}

TEST_F(FamilyChoices, ARunOfBeforeKeepsTheFamilyOfItsMethod) {
  Recipe given = table_recipe();
  given.phases[0].inference = named("laplace");
  const Recipe there = given;  // without a word on families, which reads as auto
  const Recipe decision = decided(given).recipe;
  EXPECT_EQ(decision.phases[0].inference->family, FamilyChoice::full);
  EXPECT_EQ(decided_as_before(there, given, decision), given);
  // One that began with it goes on with it, and what is asked for now is not overruled.
  EXPECT_EQ(decided_as_before(decision, given, decision), decision);
  EXPECT_EQ(decided_as_before(there, decision, decision), decision);
}

TEST_F(FamilyChoices, ASchedulesAlphaMustBeRead) {
  Recipe recipe = table_recipe();
  recipe.phases[0].schedule.emplace().alpha.emplace();
  for (const auto& [name, family] : {std::pair{"laplace", FamilyChoice::diagonal},
                                     {"laplace", FamilyChoice::automatic},
                                     {"map", FamilyChoice::automatic},
                                     {"", FamilyChoice::automatic}}) {
    recipe.phases[0].inference = named(name, family);
    const std::string said = refusal(recipe);
    EXPECT_EQ(said.find("phase.0.schedule.alpha must go with"), 0u) << name << ": " << said;
    const bool full = family == FamilyChoice::automatic && std::string(name) != "map";
    EXPECT_EQ(said.find("of the full family") != said.npos, full) << name;
  }
  recipe.phases[0].inference = named("scaled_identity");
  EXPECT_NO_THROW(decided(recipe));
  recipe.client.epochs = 2;
  recipe.phases[0].inference = named("sample_moments");
  recipe.phases[0].inference->shrinkage = 0.1;
  EXPECT_EQ(refusal(recipe).find("phase.0.schedule.alpha must go with"), 0u);
  recipe.phases[0].inference->rescale = true;
  EXPECT_NO_THROW(decided(recipe));
  recipe.phases[0].algorithm = "fed_lap";
  recipe.phases[0].inference = named("map");
  EXPECT_EQ(refusal(recipe),
            "phase.0.schedule.alpha must be left out: no method of fed_lap reads alpha");
}

TEST_F(FamilyChoices, AGpuRefusesItByTheNameOfAnother) {
  const Recipe recipe = table_recipe();
  EXPECT_EQ(message_of<InputError>([&] { refuse_full_family(decided(recipe).recipe, "cuda"); }),
            "phase.0.inference.family: full runs on the CPU, but the device is cuda; family = "
            "\"diagonal\" runs there");
  EXPECT_NO_THROW(refuse_full_family(recipe, "cuda"));
}

}  // namespace
}  // namespace fedep
