#include "app/posterior/saved_posterior.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/test_run.h"
#include "fedep/data/registry.h"
#include "fedep/message/error.h"
#include "fedep/store/checkpoint.h"
#include "fedep/store/safetensors/safetensors.h"

namespace fedep {
namespace {

using testing::HasSubstr;

std::string refusal(const std::filesystem::path& path) {
  return message_of<InputError>([&] { read_posterior(path); });
}

TEST(SavedPosterior, OfARunIsItsLatestCheckpoint) {
  const TestRun run;
  const SavedPosterior saved = read_posterior(run.path());
  EXPECT_EQ(saved.file, run.checkpoint());
  EXPECT_EQ(saved.algorithm, "fed_ep");
  EXPECT_TRUE(saved.posterior);
  EXPECT_EQ(unfinished(saved), "");
  const auto data = open_dataset(saved.recipe.data, saved.recipe.seed, run.folder().path());
  const auto model = model_of(saved, data->info());
  EXPECT_EQ(saved.layout, model->layout());
  EXPECT_EQ(saved.state, read_checkpoint(run.checkpoint(), model->layout()).state);
  EXPECT_EQ(read_posterior(run.checkpoint()).state, saved.state);
}

TEST(SavedPosterior, OfSeveralCheckpointsIsTheOneOfTheLastRound) {
  const TemporaryFolder folder;
  for (const int round : {9, 10, 2}) {
    folder.write(fmt::format("checkpoint-{}.safetensors", round), "state");
  }
  EXPECT_EQ(checkpoint_of(folder.path()).filename(), "checkpoint-10.safetensors");
}

TEST(SavedPosterior, OfFedAvgIsAPoint) {
  EXPECT_FALSE(read_posterior(TestRun(kFedAvg).path()).posterior);
}

TEST(SavedPosterior, OfAnotherModelIsRefused) {
  const TestRun run;
  const SavedPosterior saved = read_posterior(run.path());
  DatasetInfo other;
  other.name = "other";
  other.features = {8};
  other.outputs = 1;
  other.target = TargetKind::binary;
  EXPECT_THAT(message_of<InputError>([&] { model_of(saved, other); }),
              HasSubstr("has weight [8, 1] on data other, but has weight [3, 1]"));
}

TEST(SavedPosterior, IsDrawnFromAsIsAskedElseAsTheRecipeSaysElseTenTimes) {
  SavedPosterior saved;
  EXPECT_EQ(draws_to_average(saved, std::nullopt), 10);
  saved.recipe.evaluate.samples = 7;
  EXPECT_EQ(draws_to_average(saved, std::nullopt), 7);
  EXPECT_EQ(draws_to_average(saved, 3), 3);
  EXPECT_EQ(draws_to_average(saved, 0), 0);
}

TEST(SavedPosterior, ARunThatGoesOnSaysSo) {
  const TestRun run;
  SavedPosterior saved = read_posterior(run.path());
  EXPECT_EQ(unfinished(saved), "");
  saved.state.round = 4;
  saved.over = false;
  EXPECT_THAT(unfinished(saved), HasSubstr("the run is not over: this is round 4 of 6"));
}

TEST(SavedPosterior, WhatIsNoRunIsRefusedInClearWords) {
  const TemporaryFolder folder;
  EXPECT_THAT(refusal(folder.path() / "none"), HasSubstr("but is not there"));
  EXPECT_THAT(refusal(folder.path()), HasSubstr("neither recipe.toml nor checkpoints"));
  folder.write("recipe.toml", "");
  EXPECT_THAT(refusal(folder.path()), HasSubstr("must have a checkpoint, but has none"));
  folder.write("checkpoint-3.safetensors", "not one");
  EXPECT_THAT(refusal(folder.path()), HasSubstr("checkpoint-3.safetensors"));
  write_safetensors(folder.path() / "other.safetensors", {}, {{"format", "pt"}});
  EXPECT_THAT(refusal(folder.path() / "other.safetensors"), HasSubstr("another safetensors file"));
}

}  // namespace
}  // namespace fedep
