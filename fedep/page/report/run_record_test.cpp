#include "fedep/page/report/run_record.h"

#include <chrono>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fedep/message/error.h"
#include "fedep/page/test_runs.h"

namespace fedep {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

// As if nobody had written to it for a day.
void make_old(const fs::path& file) {
  fs::last_write_time(file, fs::file_time_type::clock::now() - std::chrono::hours(24));
}

TEST(RunRecords, HoldAFinishedRunsRounds) {
  const TemporaryFolder folder;
  const RunRecord run = read_run_record(write_run(folder, "first", 6, true));
  EXPECT_EQ(run.name, "first");
  EXPECT_EQ(run.history.rounds.size(), 6u);
  EXPECT_EQ(run.status, RunStatus::finished);
  ASSERT_TRUE(run.history.header);
  EXPECT_EQ(run.history.header->clients, 6);
  EXPECT_EQ(run.recipe.seed, 7u);
  EXPECT_TRUE(run.faults.empty());
  EXPECT_FALSE(run.posterior.has_value());
  EXPECT_TRUE(run.evaluation.is_null());
}

TEST(Switches, AreWherePhasesButTheLastEnd) {
  Recipe recipe;
  EXPECT_THAT(switches_in(recipe), ElementsAre());
  for (const int rounds : {4, 3, 5}) recipe.phases.emplace_back().rounds = rounds;
  EXPECT_THAT(switches_in(recipe), ElementsAre(4, 7));
}

TEST(RunRecords, TellARunThatGoesOnFromOneThatStopped) {
  const TemporaryFolder folder;
  const fs::path run = write_run(folder, "first", 3, false);
  EXPECT_EQ(read_run_record(run).status, RunStatus::running);
  make_old(run / "log.jsonl");
  EXPECT_EQ(read_run_record(run).status, RunStatus::stopped);
  // An end after too few rounds is that of a shorter run that was to be continued.
  const fs::path shorter = write_run(folder, "shorter", 3, true);
  make_old(shorter / "log.jsonl");
  EXPECT_EQ(read_run_record(shorter).status, RunStatus::stopped);
}

TEST(RunRecords, KeepTheRoundsBeforeADamagedLine) {
  const TemporaryFolder folder;
  const fs::path run = write_run(folder, "first", 0, false);
  const std::string two = line_of(test_round(0, 0.5)) + "\n" + line_of(test_round(1, 0.5)) + "\n";
  const auto with = [&](const std::string& rest) {
    folder.write("first/log.jsonl", "{\"kind\":\"run\"}\n" + two + rest);
    return read_run_record(run);
  };
  EXPECT_EQ(with("").history.rounds.size(), 2u);
  for (const std::string rest : {"{\"kind\":\"rou", "nonsense\n", "{\"round\":2}\n", "[]\n"}) {
    const RunRecord record = with(rest);
    EXPECT_EQ(record.history.rounds.size(), 2u) << rest;
    EXPECT_EQ(record.faults.size(), 1u) << rest;
    EXPECT_THAT(record.faults[0], HasSubstr("log.jsonl:4")) << rest;
  }
  const RunRecord gap = with(line_of(test_round(3, 0.5)) + "\n");
  EXPECT_EQ(gap.history.rounds.size(), 2u);
  EXPECT_THAT(gap.faults, ElementsAre(HasSubstr("expected the line of round 2")));
}

TEST(RunRecords, SayWhatIsMissing) {
  const TemporaryFolder folder;
  const auto refusal = [](const fs::path& path) {
    return message_of<InputError>([&] { read_run_record(path); });
  };
  EXPECT_THAT(refusal(folder.path() / "nowhere"), HasSubstr("but is not there"));
  EXPECT_THAT(refusal(folder.write("file", "")), HasSubstr("but is a file"));
  EXPECT_THAT(refusal(folder.path()), HasSubstr("but has no recipe.toml"));
  folder.write("empty/recipe.toml", to_toml(parse_recipe(kTestRecipe)));
  const RunRecord empty = read_run_record(folder.path() / "empty");
  EXPECT_TRUE(empty.history.rounds.empty());
  EXPECT_THAT(empty.faults, ElementsAre(HasSubstr("has not begun")));
}

TEST(RunRecords, LeaveOutPartsThatCannotBeRead) {
  const TemporaryFolder folder;
  const fs::path run = write_run(folder, "first", 6, true);
  folder.write("first/evaluation.json", "{\"reliability\"");
  folder.write("first/checkpoint-6.safetensors", "not one");
  const RunRecord record = read_run_record(run);
  EXPECT_EQ(record.history.rounds.size(), 6u);
  EXPECT_TRUE(record.evaluation.is_null());
  EXPECT_FALSE(record.posterior.has_value());
  EXPECT_THAT(record.faults, ElementsAre(HasSubstr("evaluation.json"), HasSubstr("safetensors")));
}

TEST(RunRecords, HaveAPosteriorOnlyWhereOneIsInferred) {
  const TemporaryFolder folder;
  const fs::path run = write_run(folder, "first", 6, true);
  const std::vector<float> eta{1, 2}, lambda{4, 16};
  const std::vector<TensorView> tensors{{"eta.w", {2}, std::span(eta)},
                                        {"lambda.w", {2}, std::span(lambda)}};
  write_safetensors(run / "checkpoint-2.safetensors", tensors, {{"round", "2"}});
  EXPECT_FALSE(read_run_record(run).posterior.has_value());  // FedAvg's last round
  write_safetensors(run / "checkpoint-10.safetensors", tensors, {{"round", "10"}});
  write_safetensors(run / "checkpoint-3.safetensors", tensors, {{"round", "3"}});
  EXPECT_FALSE(read_run_record(run).posterior.has_value());  // 10 is no round of this recipe
  fs::remove(run / "checkpoint-10.safetensors");
  ASSERT_TRUE(read_run_record(run).posterior.has_value());
  EXPECT_EQ(read_run_record(run).posterior->round, 3);
  EXPECT_FALSE(read_run_record(run, "", 10).posterior.has_value());  // larger than ten bytes
}

TEST(NamesOfRuns, AreAsShortAsTheyCanBe) {
  using Paths = std::vector<fs::path>;
  EXPECT_THAT(names_of(Paths{"run/a", "run/b/"}), ElementsAre("a", "b"));
  EXPECT_THAT(names_of(Paths{"x/a", "y/a", "y/b"}), ElementsAre("x/a", "y/a", "b"));
  EXPECT_THAT(names_of(Paths{"a"}), ElementsAre("a"));
  EXPECT_THAT(names_of(Paths{}), ElementsAre());
  EXPECT_THAT(names_of(Paths{"."}), ElementsAre(fs::current_path().filename().string()));
}

}  // namespace
}  // namespace fedep
