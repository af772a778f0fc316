#include "fedep/sim/cpu_only.h"

#include <string>

#include <gtest/gtest.h>

#include "fedep/algorithm/algorithm.h"
#include "fedep/inference/method.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

std::string refusal(std::string_view algorithm, std::string_view method) {
  Recipe recipe;
  recipe.phases.push_back({.algorithm = "fed_avg", .rounds = 1});
  recipe.phases.push_back({.algorithm = std::string(algorithm), .rounds = 1});
  if (!method.empty()) recipe.phases[1].inference = InferenceSettings{.name = std::string(method)};
  try {
    refuse_cpu_only(recipe, "cuda");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(CpuOnly, IsRefusedElsewhereByName) {
  EXPECT_EQ(refusal("fed_ep", "ivon"),
            "phase.1.inference.name: ivon runs on the CPU, but the device is cuda");
  for (const Algorithm& algorithm : algorithms()) {
    EXPECT_EQ(refusal(algorithm.name, ""), "") << algorithm.name;
  }
  for (const Method& method : methods()) {
    EXPECT_EQ(refusal("fed_ep", method.name).empty(), method.on_gpu) << method.name;
  }
}

TEST(CpuOnly, IsNotWhatHasFactorsAndSumsAlone) {
  EXPECT_EQ(refusal("fed_lap_cov", "laplace"), "");
  EXPECT_EQ(refusal("pvi", "ngvi"), "");
  EXPECT_EQ(refusal("fed_lap", "map"), "");
}

}  // namespace
}  // namespace fedep
