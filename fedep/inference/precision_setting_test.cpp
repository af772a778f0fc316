#include "fedep/inference/precision_setting.h"

#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "fedep/inference/method.h"

namespace fedep {
namespace {

InferenceSettings textbook(const std::string& name) { return {.name = name, .langevin = true}; }

// The key that stands in the way; empty: precisions are inferred.
std::string key_of(const InferenceSettings& settings) {
  const auto setting = find_method(settings.name).precision_setting;
  const auto found = setting == nullptr ? std::nullopt : setting(settings);
  return found ? found->key : "";
}

TEST(PrecisionSetting, IsAllThatScaledIdentityAndMapHave) {
  EXPECT_EQ(key_of(textbook("scaled_identity")), "name");
  EXPECT_EQ(key_of(textbook("map")), "name");
}

TEST(PrecisionSetting, IsNoneOfTheTextbooksMethods) {
  for (const Method& method : methods()) {
    if (method.family == Family::isotropic) continue;
    EXPECT_EQ(key_of(textbook(std::string(method.name))), "") << method.name;
  }
}

TEST(PrecisionSetting, IsNamedByItsKey) {
  struct Case {
    std::string method, key;
    std::function<void(InferenceSettings&)> set;
  };
  const std::vector<Case> cases{
      {"laplace", "scale", [](InferenceSettings& s) { s.scale = 500; }},
      {"laplace", "clip_std", [](InferenceSettings& s) { s.clip_std = 2; }},
      {"ngvi", "scale", [](InferenceSettings& s) { s.scale = 0.5; }},
      {"ngvi", "clip_std", [](InferenceSettings& s) { s.clip_std = 2; }},
      {"sample_moments", "rescale", [](InferenceSettings& s) { s.rescale = true; }},
      {"sample_moments", "langevin", [](InferenceSettings& s) { s.langevin = false; }},
      {"sample_moments", "shrinkage", [](InferenceSettings& s) { s.shrinkage = 1e-4; }},
      {"sample_moments", "clip_std", [](InferenceSettings& s) { s.clip_std = 2; }},
      {"sample_moments", "average_within_epoch",
       [](InferenceSettings& s) { s.average_within_epoch = true; }},
  };
  for (const Case& c : cases) {
    InferenceSettings settings = textbook(c.method);
    c.set(settings);
    EXPECT_EQ(key_of(settings), c.key) << c.method;
  }
}

TEST(PrecisionSetting, IsTheStartOfNgvisRunningMeanAndIsForgottenBatchByBatch) {
  InferenceSettings settings = textbook("ngvi");
  settings.decay = 0.9;
  const auto start_left = find_method("ngvi").start_left;
  EXPECT_EQ(start_left(settings, 0), 1);
  EXPECT_NEAR(start_left(settings, 22), 0.0985, 1e-4);  // 0.9^22
  for (const Method& method : methods()) {
    EXPECT_EQ(method.start_left != nullptr, method.name == "ngvi" || method.name == "ivon");
  }
}

// A chain without Langevin noise ends at the mode, where Laplace's curvature is to be taken.
TEST(PrecisionSetting, IsNotTheLackOfNoiseWherePrecisionsComeFromGradients) {
  for (const char* name : {"laplace", "ngvi"}) {
    InferenceSettings settings = textbook(name);
    settings.langevin = false;
    EXPECT_EQ(key_of(settings), "") << name;
  }
}

}  // namespace
}  // namespace fedep
