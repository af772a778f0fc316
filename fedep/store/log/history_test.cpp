#include "fedep/store/log/history.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fedep/message/error.h"
#include "fedep/message/test_folder.h"
#include "fedep/store/log/log_lines.h"
#include "fedep/store/log/run_log.h"

namespace fedep {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsNan;
using testing::Pair;

const RunHeader kHeader{.recipe = "seed = 9\n[data]\nname = \"Krankenhäuser \\\"Süd\\\"\"\n",
                        .seed = 9,
                        .clients = 500,
                        .data = "00ff00ff00ff00ff",
                        .version = "0.6.0",
                        .machine = "a machine",
                        .device = "cpu: a CPU, 2 threads",
                        .remark = "products are rounded",
                        .shared_rounds = 401};
const RunEndRecord kEnd{.rounds = 2, .seconds = 0.1 + 0.2, .improper = 3};

RoundRecord full_record(std::int64_t round) {
  return record_of(round, "fed_ep",
                   {.asked = 20,
                    .answered = 15,
                    .dropped = 2,
                    .outside_grid = 3,
                    .diverged = 1,
                    .skipped = 5,
                    .clipped = 4,
                    .improper_cavities = 3,
                    .improper_global = 100,
                    .step_scale = 0.8,
                    .steps = 8,
                    .loss_sum = 4,
                    .bytes_up = 1000,
                    .bytes_down = 2000,
                    .window = {.begins = 2,
                               .ends = true,
                               .mean_moved = 0.25,
                               .log_sd_moved = INFINITY,
                               .judged = false,
                               .left = MovesLeft{0.1 + 0.2, 0}}},
                   1.5, {{"accuracy", 1.0 / 3}, {"ece", NAN}});
}

class Histories : public testing::Test {
 protected:
  History read(const std::string& text) const { return read_history(folder_.write("l", text)); }
  HistorySoFar so_far(const std::string& text) const {
    return read_history_so_far(folder_.write("log.jsonl", text));
  }

  TemporaryFolder folder_;
  const std::string first_ = line_of(kHeader) + "\n";
  const std::string rounds_ =
      line_of(full_record(0)) + "\n" + line_of(record_of(1, "fed_ep", {}, 0.5, {})) + "\n";
  const std::string last_ = line_of(kEnd) + "\n";
};

TEST_F(Histories, SayWhatIsLeftOfTheFactorsBeginningIfSomebodyDid) {
  RoundRecord told = full_record(0), unknown = full_record(1);
  told.start_precision = 0.1 + 0.2;
  unknown.start_precision = NAN;
  const History history = read(first_ + line_of(told) + "\n" + line_of(unknown) + "\n" +
                               line_of(full_record(2)) + "\n");
  ASSERT_EQ(history.rounds.size(), 3u);
  EXPECT_EQ(history.rounds[0].start_precision, 0.1 + 0.2);
  EXPECT_THAT(history.rounds[1].start_precision.value(), IsNan());
  EXPECT_EQ(history.rounds[2].start_precision, std::nullopt);
  for (const RoundRecord& round : history.rounds) EXPECT_EQ(round.scores.size(), 2u);
}

TEST_F(Histories, ReadingIsTheInverseOfWriting) {
  const History history = read(first_ + rounds_ + last_);
  EXPECT_EQ(history.header, kHeader);
  EXPECT_EQ(history.end, kEnd);
  std::string again = line_of(*history.header) + "\n";
  for (const RoundRecord& round : history.rounds) again += line_of(round) + "\n";
  EXPECT_EQ(again + line_of(*history.end) + "\n", first_ + rounds_ + last_);
  EXPECT_TRUE(is_whole(history, 2));
  EXPECT_EQ(line_of(*so_far(first_ + rounds_ + last_).history.header), line_of(kHeader));
}

TEST_F(Histories, TellHowFarQMovedOnlyWhereAWindowEnds) {
  const History history = read(first_ + rounds_ + last_);
  EXPECT_EQ(history.rounds[0].window, 2);
  EXPECT_EQ(history.rounds[0].window_end,
            (WindowEnd{0.25, INFINITY, false, MovesLeft{0.1 + 0.2, 0}}));
  EXPECT_THAT(line_of(history.rounds[0]), HasSubstr("\"log_sd_moved\":null"));
  EXPECT_THAT(score_of(history.rounds[0], "moved"), IsNan());
  RoundRecord round{.window_end = WindowEnd{0.25, 0.5}};
  EXPECT_EQ(score_of(round, "moved"), 0.5);
  EXPECT_THAT(score_of(history.rounds[1], "moved"), IsNan());
  EXPECT_EQ(history.rounds[1].window, 0);
  EXPECT_FALSE(history.rounds[1].window_end);
  EXPECT_THAT(line_of(history.rounds[1]), testing::Not(HasSubstr("moved")));
  EXPECT_THAT(line_of(round), testing::Not(HasSubstr("left")));
}

// What docs/files.md promises, field by field.
TEST(RoundLine, HasTheRoundsNumbers) {
  EXPECT_EQ(line_of(full_record(401)),
            R"({"kind":"round","round":401,"phase":"fed_ep","clients":20,"dropped":2,)"
            R"("outside_grid":3,"diverged":1,"skipped":5,"clipped":4,"guarded":4,)"
            R"("step_scale":0.8,"client_steps":8,"bytes_up":1000,"bytes_down":2000,"seconds":1.5,)"
            R"("train_loss":0.5,"window":2,"mean_moved":0.25,"log_sd_moved":null,"judged":false,)"
            R"("mean_left":0.30000000000000004,"log_sd_left":0.0,)"
            R"("accuracy":0.3333333333333333,"ece":null})");
}

TEST(RoundLine, WritesNullForWhatDoesNotExist) {
  RoundNumbers numbers{.asked = 3, .answered = 3};
  EXPECT_THAT(line_of(record_of(4, "fed_ep", numbers, 0.5, {{"nll", INFINITY}, {"ece", NAN}})),
              HasSubstr(R"("train_loss":null,"nll":null,"ece":null})"));
  numbers.steps = 4;
  numbers.loss_sum = NAN;
  // A round that was not evaluated has no scores at all.
  EXPECT_THAT(line_of(record_of(4, "fed_ep", numbers, 0.5, {})), HasSubstr("\"train_loss\":null}"));
}

TEST(RunLine, HasARemarkAndSharedRoundsOnlyWhereThereAreSome) {
  EXPECT_EQ(line_of(RunHeader{.seed = 1, .clients = 3}),
            R"({"kind":"run","recipe":"","seed":1,"clients":3,"data":"","version":"","machine":"",)"
            R"("device":""})");
  EXPECT_THAT(line_of(kHeader),
              HasSubstr(R"("remark":"products are rounded","shared_rounds":401})"));
}

TEST_F(Histories, CutOffAnywhereAreTheLinesThatWereWhole) {
  const std::string all = first_ + rounds_ + last_;
  for (std::size_t length = 0; length <= all.size(); ++length) {
    const std::string text = all.substr(0, length);
    const auto lines = std::size_t(std::ranges::count(text, '\n'));
    const History history = read(text);
    const HistorySoFar partly = so_far(text);
    for (const History& read : {history, partly.history}) {
      EXPECT_EQ(read.header.has_value(), lines >= 1) << length;
      EXPECT_EQ(read.rounds.size(), std::min<std::size_t>(lines - (lines > 0), 2)) << length;
      EXPECT_EQ(read.end.has_value(), lines == 4) << length;
    }
    const bool within_a_line = length > 0 && text.back() != '\n';
    EXPECT_EQ(partly.fault,
              within_a_line ? "log.jsonl:" + std::to_string(lines + 1) + ": cut off within the line"
                            : "");
  }
}

TEST_F(Histories, OfOtherVersionsAreReadAsFarAsTheyGo) {
  const History old = read(
      "{\"kind\":\"run\",\"clients\":\"six\",\"device\":3,\"new\":[1]}\n"
      "{\"kind\":\"round\",\"round\":0,\"dropped\":\"two\",\"seconds\":null,\"note\":\"hot\","
      "\"accuracy\":0.5}\n"
      "{\"kind\":\"weather\"}\n");
  EXPECT_EQ(old.header, RunHeader{});
  ASSERT_EQ(old.rounds.size(), 1u);
  EXPECT_EQ(old.rounds[0].dropped, 0);
  EXPECT_EQ(old.rounds[0].seconds, 0);
  EXPECT_EQ(old.rounds[0].step_scale, 1);
  EXPECT_THAT(old.rounds[0].train_loss, IsNan());
  EXPECT_THAT(old.rounds[0].scores, ElementsAre(Pair("accuracy", 0.5)));
  EXPECT_FALSE(old.end.has_value());
}

TEST_F(Histories, NameTheLineThatIsNone) {
  for (const char* bad : {"nonsense", "[1]", "{}", "{\"kind\":5}", ""}) {
    const fs::path path = folder_.write("l", first_ + bad + "\n" + rounds_);
    EXPECT_EQ(message_of<InputError>([&] { read_history(path); }),
              path.string() + ":2: line must be a JSON object with a kind, but is not");
  }
  EXPECT_THAT(message_of<InputError>([] { read_history("nowhere/log.jsonl"); }),
              HasSubstr("nowhere/log.jsonl"));
}

TEST_F(Histories, SoFarEndWhereALineIsNotTheNextOne) {
  const HistorySoFar gap = so_far(first_ + line_of(full_record(1)) + "\n" + last_);
  EXPECT_THAT(gap.history.rounds, IsEmpty());
  EXPECT_FALSE(gap.history.end);
  EXPECT_EQ(gap.fault, "log.jsonl:2: expected the line of round 0; shown up to there");
  const HistorySoFar headless = so_far(rounds_);
  EXPECT_EQ(headless.fault, "");  // as good as a log by hand
  EXPECT_EQ(headless.history.rounds.size(), 2u);
  EXPECT_EQ(so_far("{\"kind\":\"weather\"}\n" + rounds_).fault,
            "log.jsonl:1: expected a run's first line; shown up to there");
}

TEST_F(Histories, AreWholeOnlyWithEveryRoundInTurnAndTheirEnd) {
  EXPECT_FALSE(is_whole(read(first_ + rounds_), 2));
  EXPECT_FALSE(is_whole(read(rounds_ + last_), 2));
  EXPECT_FALSE(is_whole(read(first_ + rounds_ + last_), 3));
  const std::string twice = line_of(full_record(0)) + "\n" + line_of(full_record(0)) + "\n";
  EXPECT_FALSE(is_whole(read(first_ + twice + last_), 2));
  // An end that others follow is that of a shorter run.
  EXPECT_FALSE(read(first_ + last_ + rounds_).end.has_value());
}

TEST(Score, IsFoundByItsNameAndTheTrainingLossIsOne) {
  const RoundRecord round = full_record(0);
  EXPECT_EQ(score_of(round, "accuracy"), 1.0 / 3);
  EXPECT_EQ(score_of(round, "train_loss"), 0.5);
  EXPECT_THAT(score_of(round, "ece"), IsNan());
  EXPECT_THAT(score_of(round, "seconds"), IsNan());
}

TEST(History, ALineThatNestsWithoutEndIsABadLine) {
  const TemporaryFolder folder;
  const std::string deep =
      R"({"kind":"round","round":)" + std::string(300'000, '[') + std::string(300'000, ']') + "}\n";
  const auto log = folder.write("log.jsonl", std::string_view(deep));
  EXPECT_EQ(message_of<InputError>([&] { read_history(log); }),
            log.string() + ":1: line must be a JSON object with a kind, but is not");
}

}  // namespace
}  // namespace fedep
