#include "fedep/store/log/run_log.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "fedep/message/error.h"
#include "fedep/message/test_folder.h"
#include "fedep/store/log/log_lines.h"

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
    RunLog log(path_, begin_log(path_, {.seed = 1}));
    for (std::int64_t round = 0; round < rounds; ++round) log.write(round_of(round));
    log.write(RunEndRecord{.rounds = rounds});
  }

  // Cut before this round, and ready to go on with it.
  RunLog cut(std::int64_t round) const {
    return {path_, cut_log(path_, read_log_part(path_, round))};
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
  RunLog(path_, begin_log(path_, {}, rounds)).write(round_of(2));
  EXPECT_EQ(read_history(path_).rounds.size(), 3u);
}

TEST_F(RunLogs, CutKeepTheRoundsBeforeTheCheckpoint) {
  for (const std::int64_t round : {0, 2, 3}) {
    write_run(3);
    const History kept = read_log_part(path_, round).history;
    EXPECT_EQ(std::int64_t(kept.rounds.size()), round);
    EXPECT_EQ(kept.header, RunHeader{.seed = 1});
    cut(round).write(round_of(round, "again"));
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
  cut(1);
  std::ifstream file(path_);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), text);
}

TEST_F(RunLogs, ALineThatACrashCutShortIsNotThere) {
  write_run(2);
  std::ofstream(path_, std::ios::app) << "{\"kind\":\"rou";
  EXPECT_TRUE(is_whole(read_history(path_), 2));
  cut(2).write(round_of(2));
  EXPECT_EQ(read_history(path_).rounds.size(), 3u);
}

// A power cut may lose one block and keep the next.
TEST_F(RunLogs, WhateverFollowsTheRoundsBeforeTheCheckpointDoesNotMatter) {
  for (const std::string& rest : {std::string(99, '\0') + "\n" + line_of(round_of(3)) + "\n",
                                  std::string("nonsense\n\n"), std::string("{\"kind\":\"ru")}) {
    write_run(2);
    std::ofstream(path_, std::ios::app) << rest;
    cut(2).write(round_of(2, "again"));
    EXPECT_EQ(read_history(path_).rounds.back().phase, "again");
    EXPECT_EQ(read_history(path_).rounds.size(), 3u);
  }
}

TEST_F(RunLogs, AreMarkedByWhoPlaysAndByWhatWasPlayed) {
  const auto marks = [&](const RunHeader& header, std::span<const RoundRecord> rounds) {
    begin_log(path_, header, rounds);
    return read_log_part(path_, std::int64_t(rounds.size())).marks;
  };
  const RunHeader header{.seed = 1, .clients = 3, .data = "d"};
  const std::vector<RoundRecord> rounds{round_of(0), round_of(1)};
  const std::vector<LogMark> own = marks(header, rounds);
  EXPECT_EQ(own.size(), 3u);
  EXPECT_EQ(marks(header, std::span(rounds).first(1)), std::vector(own.begin(), own.end() - 1));
  for (const RunHeader& other : {RunHeader{.seed = 2, .clients = 3, .data = "d"},
                                 RunHeader{.seed = 1, .clients = 4, .data = "d"},
                                 RunHeader{.seed = 1, .clients = 3, .data = "e"}}) {
    EXPECT_NE(marks(other, rounds).back(), own.back());
  }
  for (const auto change : {+[](RoundRecord& round) { round.clients = 7; },
                            +[](RoundRecord& round) { round.phase = "fed_pa"; },
                            +[](RoundRecord& round) { round.bytes_down = 7; },
                            +[](RoundRecord& round) { round.train_loss = 0.25; }}) {
    std::vector<RoundRecord> others = rounds;
    change(others[0]);
    EXPECT_NE(marks(header, others).back(), own.back());
  }
  // Of another start, on another machine.
  std::vector<RoundRecord> again = rounds;
  again[0].seconds = 9;
  again[1].scores = {{"accuracy", 0.5}};
  EXPECT_EQ(marks({.seed = 1, .clients = 3, .data = "d", .machine = "m"}, again), own);
}

TEST_F(RunLogs, HaveTheSameMarkWhileTheyAreWrittenAndWhenTheyAreRead) {
  RunLog log(path_, begin_log(path_, {.seed = 1}));
  log.write(round_of(0));
  log.write(record_of(1, "fed_ep", {.steps = 3, .loss_sum = 0.1}, 0.25, {{"accuracy", 1.0 / 3}}));
  EXPECT_EQ(log.mark(), read_log_part(path_, 2).marks.back());
}

TEST_F(RunLogs, WithoutHeaderOrWithMissingRoundsAreRefusedByName) {
  const auto refusal = [&](std::int64_t round) {
    return message_of<InputError>([&] { read_log_part(path_, round); });
  };
  write_run(3);
  EXPECT_NE(refusal(4).find(path_.string()), std::string::npos);
  write("");
  EXPECT_NE(refusal(0).find("header"), std::string::npos);
  write("{\"kind\":\"round\",\"round\":0}\n");
  EXPECT_NE(refusal(1).find("header"), std::string::npos);
  write("{\"kind\":\"run\"}\nnonsense\n");
  EXPECT_NE(refusal(1).find(path_.string() + ":2"), std::string::npos) << refusal(1);
  const std::string first = line_of(round_of(0)) + "\n", third = line_of(round_of(2)) + "\n";
  write("{\"kind\":\"run\"}\n" + first + first + third);  // not in turn
  EXPECT_NE(refusal(3).find("holds 1"), std::string::npos) << refusal(3);
  write("{\"kind\":\"run\"}\n{\"kind\":\"round\",\"round\":\"0\"}\n");
  EXPECT_NE(refusal(1).find("holds 0"), std::string::npos) << refusal(1);
  fs::remove(path_);
  EXPECT_NE(refusal(0).find(path_.string()), std::string::npos);
}

}  // namespace
}  // namespace fedep
