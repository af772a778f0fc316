#include "fedep/store/run_log.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "fedep/message/error.h"
#include "fedep/message/test_folder.h"

namespace fedep {
namespace {

namespace fs = std::filesystem;

class RunLogs : public testing::Test {
 protected:
  void write(const std::string& text) const { std::ofstream(path_, std::ios::binary) << text; }
  // A log of `rounds` rounds and its end.
  void write_run(std::int64_t rounds) const {
    RunLog log = RunLog::create(path_, {{"kind", "run"}, {"seed", 1}});
    for (std::int64_t round = 0; round < rounds; ++round)
      log.write(round_line(round, "fed_ep", {}, 0.5, {}));
    log.write({{"kind", "end"}});
  }

  TemporaryFolder folder_;
  fs::path path_ = folder_.path() / "log.jsonl";
};

TEST(RoundLine, WritesNullForWhatDoesNotExist) {
  RoundNumbers numbers{.asked = 3, .answered = 3};
  Json line =
      round_line(4, "fed_ep", numbers, 0.5, {{"accuracy", 0.75}, {"ece", NAN}, {"nll", INFINITY}});
  EXPECT_TRUE(line["train_loss"].is_null());
  EXPECT_TRUE(line["ece"].is_null());
  EXPECT_TRUE(line["nll"].is_null());
  EXPECT_EQ(line["accuracy"], 0.75);
  numbers.steps = 4;
  numbers.loss_sum = NAN;
  line = round_line(4, "fed_ep", numbers, 0.5, {});
  EXPECT_TRUE(line["train_loss"].is_null());
  EXPECT_EQ(line.dump().find("nan"), std::string::npos);
  EXPECT_FALSE(line.contains("accuracy"));  // a round that did not evaluate
}

TEST(RoundLine, HasTheRoundsNumbers) {
  const RoundNumbers numbers{.asked = 20,
                             .answered = 15,
                             .dropped = 2,
                             .outside_grid = 3,
                             .diverged = 1,
                             .skipped = 2,
                             .clipped = 4,
                             .improper_cavities = 3,
                             .improper_global = 100,
                             .step_scale = 0.8,
                             .steps = 8,
                             .loss_sum = 4,
                             .bytes_up = 1000,
                             .bytes_down = 2000};
  const Json line = round_line(401, "fed_ep", numbers, 1.5, {});
  EXPECT_EQ(line["kind"], "round");
  EXPECT_EQ(line["round"], 401);
  EXPECT_EQ(line["phase"], "fed_ep");
  EXPECT_EQ(line["clients"], 20);
  EXPECT_EQ(line["dropped"], 2);
  EXPECT_EQ(line["outside_grid"], 3);
  EXPECT_EQ(line["diverged"], 1);
  EXPECT_EQ(line["skipped"], 2);
  EXPECT_EQ(line["clipped"], 4);
  EXPECT_EQ(line["guarded"], 4);
  EXPECT_EQ(line["step_scale"], 0.8);
  EXPECT_EQ(line["client_steps"], 8);
  EXPECT_EQ(line["train_loss"], 0.5);
  EXPECT_EQ(line["bytes_up"], 1000);
  EXPECT_EQ(line["bytes_down"], 2000);
  EXPECT_EQ(line["seconds"], 1.5);
}

TEST_F(RunLogs, GiveBackTheLinesTheyWereGiven) {
  write_run(3);
  const std::vector<Json> lines = read_log(path_);
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[0]["kind"], "run");
  EXPECT_EQ(lines[2], round_line(1, "fed_ep", {}, 0.5, {}));
  EXPECT_EQ(lines[4]["kind"], "end");
}

TEST_F(RunLogs, ReopenedKeepTheRoundsBeforeTheCheckpoint) {
  for (const std::int64_t round : {0, 2, 3}) {
    write_run(3);
    RunLog log = RunLog::reopen(path_, round);
    log.write(round_line(round, "again", {}, 0.5, {}));
    const std::vector<Json> lines = read_log(path_);
    ASSERT_EQ(lines.size(), std::size_t(round) + 2);
    EXPECT_EQ(lines[0]["kind"], "run");
    EXPECT_EQ(lines.back()["phase"], "again");
    for (std::size_t i = 1; i < lines.size(); ++i) EXPECT_EQ(lines[i]["round"], i - 1);
  }
}

TEST_F(RunLogs, ALineThatACrashCutShortIsNotThere) {
  write_run(2);
  std::ofstream(path_, std::ios::app) << "{\"kind\":\"rou";
  EXPECT_EQ(read_log(path_).size(), 4u);
  RunLog log = RunLog::reopen(path_, 2);
  log.write(round_line(2, "fed_ep", {}, 0.5, {}));
  EXPECT_EQ(read_log(path_).size(), 4u);
}

TEST_F(RunLogs, WithoutHeaderOrWithMissingRoundsAreRefusedByName) {
  const auto refusal = [&](std::int64_t round) {
    return message_of<InputError>([&] { RunLog::reopen(path_, round); });
  };
  write_run(3);
  EXPECT_NE(refusal(4).find(path_.string()), std::string::npos);
  write("");
  EXPECT_NE(refusal(0).find("header"), std::string::npos);
  write("{\"kind\":\"round\",\"round\":0}\n");
  EXPECT_NE(refusal(1).find("header"), std::string::npos);
  write("{\"kind\":\"run\"}\nnonsense\n");
  EXPECT_NE(refusal(0).find(path_.string() + ":2"), std::string::npos) << refusal(0);
  write("{\"kind\":\"run\"}\n[1]\n");
  EXPECT_NE(refusal(0).find(path_.string() + ":2"), std::string::npos);
  write("{\"kind\":\"run\"}\n{\"kind\":5}\n");
  EXPECT_NE(refusal(0).find(path_.string() + ":2"), std::string::npos);
  write("{\"kind\":\"run\"}\n{\"kind\":\"round\",\"round\":\"0\"}\n");
  EXPECT_NE(refusal(1).find("holds 0"), std::string::npos) << refusal(1);
  fs::remove(path_);
  EXPECT_NE(refusal(0).find(path_.string()), std::string::npos);
}

}  // namespace
}  // namespace fedep
