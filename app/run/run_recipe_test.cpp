#include "app/run/run_recipe.h"

#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/run/last_evaluation.h"
#include "app/test_run.h"
#include "fedep/config/read_recipe.h"
#include "fedep/data/test_files.h"
#include "fedep/message/error.h"
#include "fedep/sim/test_process.h"
#include "fedep/store/durable_file.h"

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
  EXPECT_EQ(run_recipe(recipe, options).result.state.round, 1);
}

// A tail is refused where stop.converged may end its phase, which is then the last one.
TEST(ShortenedRecipe, DoesNotEndEarlyByTheKeyOfAPhaseThatItHasNot) {
  Recipe recipe = parse_recipe(ward_recipe(kFedEp));
  recipe.stop.converged = 0.01;
  EXPECT_EQ(shortened(recipe, 3).stop.converged, 0.01);
  recipe.phases.push_back(recipe.phases[0]);
  recipe.phases[0].average = AverageSettings{.kind = AverageKind::tail, .rounds = 2};
  const TemporaryFolder folder;
  folder.write("wards.csv", ward_table());
  const Recipe first = shortened(recipe, 4);
  EXPECT_EQ(first.stop.converged, 0);
  const RunRecipeOptions options{.out = folder.path() / "run", .data = folder.path()};
  EXPECT_EQ(run_recipe(first, options).result.state.round, 4);
}

std::map<std::filesystem::path, std::vector<std::byte>> files_in(const std::filesystem::path& run) {
  std::map<std::filesystem::path, std::vector<std::byte>> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(run)) {
    if (entry.is_regular_file()) files[entry.path()] = read_file(entry.path());
  }
  return files;
}

// Of a posterior, whose evaluation is marginalised too, and of a point.
class MissingEvaluation : public testing::TestWithParam<std::string> {
 protected:
  MissingEvaluation() { std::filesystem::remove(file_); }

  const Recipe recipe_ = parse_recipe(ward_recipe(GetParam()));
  const TestRun run_{GetParam()};
  const RunRecipeOptions options_{.out = run_.path(), .data = run_.folder().path(), .resume = true};
  const std::filesystem::path file_ = run_.path() / "evaluation.json";
  const std::map<std::filesystem::path, std::vector<std::byte>> whole_ = files_in(run_.path());
};

TEST_P(MissingEvaluation, IsWrittenAgainInTheSameBytesAndNothingElseIsTouched) {
  const std::vector<std::byte>& bytes = whole_.at(file_);
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  EXPECT_EQ(text.find("marginal") != text.npos, recipe_.evaluate.samples > 0);
  ASSERT_TRUE(lacks_evaluation(run_.path()));
  restore_evaluation(recipe_, options_);
  EXPECT_EQ(files_in(run_.path()), whole_);
  EXPECT_FALSE(lacks_evaluation(run_.path()));
}

TEST_P(MissingEvaluation, IsWrittenAgainInTheSameBytesByAResumedRun) {
  EXPECT_EQ(run_recipe(recipe_, options_).result.end, RunEnd::done);
  EXPECT_EQ(read_file(file_), whole_.at(file_));
}

TEST_P(MissingEvaluation, IsRefusedWithoutTheCheckpointAndTheLogStays) {
  std::filesystem::remove(run_.checkpoint());
  const auto before = files_in(run_.path());
  const auto refused = testing::ThrowsMessage<InputError>(testing::AllOf(
      testing::HasSubstr(run_.path().string()), testing::HasSubstr("checkpoint-6.safetensors")));
  EXPECT_THAT([&] { restore_evaluation(recipe_, options_); }, refused);
  EXPECT_THAT([&] { run_recipe(recipe_, options_); }, refused);
  EXPECT_EQ(files_in(run_.path()), before);
}

// There are rounds to play, and all of them are.
TEST_P(MissingEvaluation, OfALongerRecipeDoesNotNeedTheCheckpoint) {
  std::filesystem::remove(run_.checkpoint());
  Recipe longer = recipe_;
  longer.phases.back().rounds = 7;
  EXPECT_EQ(run_recipe(longer, options_).result.state.round, 7);
  EXPECT_TRUE(std::filesystem::exists(file_));
}

INSTANTIATE_TEST_SUITE_P(Algorithms, MissingEvaluation,
                         testing::Values(std::string(kFedEp) + "[evaluate]\nsamples = 3\n",
                                         std::string(kFedAvg)));

TEST(LacksEvaluation, OnlyWhatHasClassesAndIsOver) {
  const TemporaryFolder folder;
  const Recipe recipe =
      parse_recipe("[data]\nname = \"toy\"\n[[phase]]\nalgorithm = \"fed_avg\"\nrounds = 1\n");
  run_recipe(recipe, {.out = folder.path(), .data = ""});
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "evaluation.json"));
  EXPECT_FALSE(lacks_evaluation(folder.path()));
  const std::string round = R"({"kind":"round","round":0,"train_loss":1,"ece":0.5})";
  folder.write("log.jsonl", "{\"kind\":\"run\"}\n" + round + "\n");
  EXPECT_FALSE(lacks_evaluation(folder.path()));
  folder.write("log.jsonl", "{\"kind\":\"run\"}\n" + round + "\n{\"kind\":\"end\",\"rounds\":1}\n");
  EXPECT_TRUE(lacks_evaluation(folder.path()));
}

}  // namespace
}  // namespace fedep
