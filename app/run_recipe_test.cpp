#include "app/run_recipe.h"

#include <gtest/gtest.h>

#include "fedep/config/read_recipe.h"
#include "fedep/data/test_files.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

// The toy has no examples for a GPU to train on; without a GPU nothing has.
TEST(RunRecipe, WhatADeviceRefusesLeavesNoRunBehind) {
  const TemporaryFolder folder;
  const Recipe recipe =
      parse_recipe("[data]\nname = \"toy\"\n[[phase]]\nalgorithm = \"fed_avg\"\nrounds = 1\n");
  RunRecipeOptions options{.out = folder.path() / "run", .data = ""};
  options.device = "cuda";
  EXPECT_THROW(run_recipe(recipe, options), InputError);
  EXPECT_FALSE(std::filesystem::exists(options.out));
  options.device = "cpu";
  EXPECT_EQ(run_recipe(recipe, options).state.round, 1);
}

}  // namespace
}  // namespace fedep
