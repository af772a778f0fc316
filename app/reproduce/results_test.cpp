#include "app/reproduce/results.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "app/reproduce/paper_tables.h"
#include "app/reproduce/test_result.h"
#include "fedep/message/error.h"
#include "fedep/message/test_folder.h"

namespace fedep {
namespace {

TEST(ResultLine, HasThePromisedForm) {
  EXPECT_EQ(to_line(table2_result(1, 0.5)),
            R"({"table":"table2","row":"fed_ep_i","seed":1,"rounds":1500,"metrics":)"
            R"({"accuracy_1000":0.48,"accuracy_1500":0.5,"rounds_to_45":470,"rounds_to_50":null},)"
            R"("seconds":12.5,"device":"cpu: a CPU, 2 threads","date":"2026-01-31T12:00:00Z",)"
            R"("version":"0.1.0"})");
}

TEST(ResultFiles, GiveBackWhatWasAppended) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "results.jsonl";
  EXPECT_TRUE(read_results(file).empty());
  append_result(file, table2_result(1, 0.5));
  Result other = table2_result(2, 0.51, 1200);
  other.refused_rounds = 3;
  append_result(file, other);
  const std::vector<Result> results = read_results(file);
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(to_line(results[0]), to_line(table2_result(1, 0.5)));
  EXPECT_EQ(to_line(results[1]), to_line(other));
  EXPECT_EQ(results[1].refused_rounds, 3);
}

TEST(ResultFiles, GiveBackACurve) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "results.jsonl";
  Result result = table2_result(1, 0.5);
  result.curve = {.every = 10,
                  .switches = {401},
                  .scores = {{"accuracy", {0.5, kNotThere}}, {"ece", {0.25, 0.125}}}};
  append_result(file, result);
  EXPECT_TRUE(has(to_line(result), R"("curve":{"every":10,"switches":[401],)"
                                   R"("accuracy":[0.5,null],"ece":[0.25,0.125]})"))
      << to_line(result);
  EXPECT_EQ(to_line(read_results(file).at(0)), to_line(result));
}

TEST(ResultFiles, WithACurveOfOtherRoundsAreRefused) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "results.jsonl";
  for (const ResultCurve& curve : {ResultCurve{.every = 0}, ResultCurve{.switches = {1501}},
                                   ResultCurve{.switches = {7, 3}}}) {
    Result result = table2_result(1, 0.5);
    result.curve = curve;
    result.curve.scores = {{"accuracy", {0.5}}};
    std::ofstream(file) << to_line(result) << '\n';
    const std::string refusal = message_of<InputError>([&] { read_results(file); });
    EXPECT_TRUE(has(refusal, ".jsonl:1: curve")) << refusal;
  }
}

TEST(ResultFiles, WithALineThatIsNoResultAreRefusedWithItsNumber) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "results.jsonl";
  append_result(file, table2_result(1, 0.5));
  for (const auto* line : {"not json", "{}", R"({"table":2})"}) {
    std::ofstream(file, std::ios::app) << line << '\n';
    const std::string refusal = message_of<InputError>([&] { read_results(file); });
    EXPECT_TRUE(has(refusal, ".jsonl:2:")) << line << ": " << refusal;
  }
}

TEST(ResultFiles, KeepEveryLineOfThoseWhoAddAtTheSameTime) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "results.jsonl";
  constexpr std::uint64_t kWriters = 6, kLines = 60;
  {
    std::vector<std::jthread> writers;  // each line through descriptors of its own, as processes do
    for (std::uint64_t w = 0; w < kWriters; ++w) {
      writers.emplace_back([&, w] {
        for (std::uint64_t i = 0; i < kLines; ++i) {
          append_result(file, table2_result(w * kLines + i, 0.5));
        }
      });
    }
  }
  std::set<std::uint64_t> seeds;
  for (const Result& result : read_results(file)) seeds.insert(result.seed);
  EXPECT_EQ(seeds.size(), kWriters * kLines);
}

TEST(ResultFiles, GetOneLineFromAllWhoFindItMissing) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "results.jsonl";
  {
    std::vector<std::jthread> writers;
    for (int w = 0; w < 6; ++w) {
      writers.emplace_back([&] { append_result_if_missing(file, table2_result(1, 0.5)); });
    }
  }
  EXPECT_EQ(read_results(file).size(), 1u);
  append_result_if_missing(file, table2_result(2, 0.5));
  EXPECT_EQ(read_results(file).size(), 2u);
}

TEST(ResultFiles, KeepALastLineThatOnlyLacksItsLineBreak) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "results.jsonl";
  std::ofstream(file) << to_line(table2_result(1, 0.5));
  EXPECT_EQ(read_results(file).size(), 1u);
  append_result(file, table2_result(2, 0.5));
  const std::vector<Result> results = read_results(file);
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0].seed, 1u);
  EXPECT_EQ(results[1].seed, 2u);
}

TEST(ResultFiles, LoseOnlyTheLineThatACrashLeftUnfinished) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "results.jsonl";
  const std::string line = to_line(table2_result(2, 0.5));
  for (const std::size_t written : {std::size_t(1), std::size_t(12), line.size() - 1}) {
    std::ofstream(file) << to_line(table2_result(1, 0.5)) << '\n' << line.substr(0, written);
    testing::internal::CaptureStderr();
    EXPECT_EQ(read_results(file).size(), 1u);
    EXPECT_TRUE(has(testing::internal::GetCapturedStderr(), ".jsonl:2:")) << written;
    append_result(file, table2_result(3, 0.5));
    const std::vector<Result> results = read_results(file);
    ASSERT_EQ(results.size(), 2u) << written;
    EXPECT_EQ(results[1].seed, 3u);
  }
}

TEST(ResultFiles, AreLeftAloneIfTheirLastLineIsNotTheBeginningOfAResult) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "notes.txt";
  for (const std::string text : {"a note", "{}", R"({"table":2})"}) {
    std::ofstream(file) << text;
    EXPECT_TRUE(has(message_of<InputError>([&] { read_results(file); }), "notes.txt:1:")) << text;
    EXPECT_THROW(append_result(file, table2_result(1, 0.5)), InputError) << text;
    EXPECT_EQ(std::filesystem::file_size(file), text.size());
  }
}

}  // namespace
}  // namespace fedep
