#include "fedep/store/run_log.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "fedep/message/error.h"
#include "fedep/message/test_folder.h"

namespace fedep {
namespace {

namespace fs = std::filesystem;

RoundRecord round_of(std::int64_t round, std::string_view phase = "fed_ep") {
  return record_of(round, phase, {}, 0.5, {});
}

class RunLogs : public testing::Test {
 protected:
  void write(const std::string& text) const { std::ofstream(path_, std::ios::binary) << text; }
  // A log of `rounds` rounds and its end.
  void write_run(std::int64_t rounds) const {
    begin_log(path_, {.seed = 1});
    RunLog log(path_);
    for (std::int64_t round = 0; round < rounds; ++round) log.write(round_of(round));
    log.write(RunEndRecord{.rounds = rounds});
  }

  TemporaryFolder folder_;
  fs::path path_ = folder_.path() / "log.jsonl";
};

TEST_F(RunLogs, GiveBackWhatTheyWereGiven) {
  write_run(3);
  const History history = read_history(path_);
  EXPECT_EQ(history.header, RunHeader{.seed = 1});
  EXPECT_TRUE(is_whole(history, 3));
}

TEST_F(RunLogs, BegunWithRoundsOfAnotherRunHoldThem) {
  const std::vector<RoundRecord> rounds{round_of(0), round_of(1)};
  begin_log(path_, {}, rounds);
  RunLog(path_).write(round_of(2));
  EXPECT_EQ(read_history(path_).rounds.size(), 3u);
}

TEST_F(RunLogs, CutKeepTheRoundsBeforeTheCheckpoint) {
  for (const std::int64_t round : {0, 2, 3}) {
    write_run(3);
    const History kept = cut_log(path_, round);
    EXPECT_EQ(std::int64_t(kept.rounds.size()), round);
    EXPECT_EQ(kept.header, RunHeader{.seed = 1});
    RunLog(path_).write(round_of(round, "again"));
    const History history = read_history(path_);
    EXPECT_EQ(history.header, kept.header);
    EXPECT_EQ(history.rounds.back().phase, "again");
    EXPECT_FALSE(history.end);
    for (std::size_t i = 0; i < history.rounds.size(); ++i) {
      EXPECT_EQ(history.rounds[i].round, std::int64_t(i));
    }
  }
}

// They may be of a version that knew more.
TEST_F(RunLogs, CutKeepTheirLinesByteForByte) {
  const std::string text =
      "{ \"kind\": \"run\", \"new\": 1.50 }\n{\"round\":0,\"kind\":\"round\"}\n";
  write(text + "{\"kind\":\"weather\"}\n{\"kind\":\"round\",\"round\":1}\n");
  cut_log(path_, 1);
  std::ifstream file(path_);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), text);
}

TEST_F(RunLogs, ALineThatACrashCutShortIsNotThere) {
  write_run(2);
  std::ofstream(path_, std::ios::app) << "{\"kind\":\"rou";
  EXPECT_TRUE(is_whole(read_history(path_), 2));
  cut_log(path_, 2);
  RunLog(path_).write(round_of(2));
  EXPECT_EQ(read_history(path_).rounds.size(), 3u);
}

TEST_F(RunLogs, WithoutHeaderOrWithMissingRoundsAreRefusedByName) {
  const auto refusal = [&](std::int64_t round) {
    return message_of<InputError>([&] { cut_log(path_, round); });
  };
  write_run(3);
  EXPECT_NE(refusal(4).find(path_.string()), std::string::npos);
  write("");
  EXPECT_NE(refusal(0).find("header"), std::string::npos);
  write("{\"kind\":\"round\",\"round\":0}\n");
  EXPECT_NE(refusal(1).find("header"), std::string::npos);
  write("{\"kind\":\"run\"}\nnonsense\n");
  EXPECT_NE(refusal(0).find(path_.string() + ":2"), std::string::npos) << refusal(0);
  write("{\"kind\":\"run\"}\n{\"kind\":\"round\",\"round\":\"0\"}\n");
  EXPECT_NE(refusal(1).find("holds 0"), std::string::npos) << refusal(1);
  fs::remove(path_);
  EXPECT_NE(refusal(0).find(path_.string()), std::string::npos);
}

}  // namespace
}  // namespace fedep
