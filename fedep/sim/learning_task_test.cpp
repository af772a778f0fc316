#include "fedep/sim/learning_task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fedep/inference/method.h"
#include "fedep/message/error.h"
#include "fedep/sim/test_recipe.h"

namespace fedep {
namespace {

std::string refusal(const Recipe& recipe) {
  try {
    check_learning(recipe, TargetKind::label);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(LearningTask, RefusesSummedLossesWhereStepsHaveTheirLengthFromTheCurvature) {
  for (const Method& method : methods()) {
    Recipe recipe = recipe_for("linear", "fed_ep", method.name);
    if (method.needs_variance) recipe.client.epochs = 10;
    EXPECT_EQ(refusal(recipe), "") << method.name;
    recipe.client.loss_times_batch = true;
    EXPECT_EQ(refusal(recipe).empty(), !method.own_chain) << method.name;
  }
  Recipe recipe = recipe_for("linear", "fed_ivon", "ivon");
  recipe.client.loss_times_batch = true;
  EXPECT_EQ(refusal(recipe),
            "client.loss_times_batch must be false with ivon, whose steps have their length from "
            "the curvature, but is true");
}

}  // namespace
}  // namespace fedep
