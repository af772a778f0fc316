// Tables of spells, from their rows to a data set's pieces.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fedep/data/shard/shard.h"
#include "fedep/data/table/table_features.h"
#include "fedep/data/table/tabular.h"
#include "fedep/data/table/term.h"
#include "fedep/data/test_batches.h"
#include "fedep/data/test_files.h"
#include "fedep/data/validation.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

using testing::HasSubstr;

DataSettings settings() {
  DataSettings out{.name = "tabular", .test_fraction = 0};
  out.client_column = "ward";
  out.label_column = "died";
  out.label = LabelKind::time_to_event;
  out.start_column = "from";
  out.stop_column = "until";
  out.group_column = "patient";
  out.intervals = 4;
  return out;
}

std::unique_ptr<Dataset> open(const std::string& text, const DataSettings& how) {
  const DelimitedTable table = parse_delimited(text, kCsv, "spells.csv");
  return tabular_dataset(table, table_spec(how, table), how);
}

std::string refusal(const std::string& text, const DataSettings& how = settings()) {
  return message_of<InputError>([&] { open(text, how); });
}

// Patients with two spells each, one after the other; every third ends with the event.
std::string spells() {
  std::string text = "ward,patient,from,until,died,age\n";
  for (int i = 0; i < 60; ++i) {
    const int length = 3 + i * 7 % 23;
    text += fmt::format("{0},{1},0,{2},0,{3}\n{0},{1},{2},{4},{5},{3}\n", i % 3 ? "A" : "B", i,
                        length, 30 + i, length + 5 + i % 11, i % 3 == 0 ? 1 : 0);
  }
  return text;
}

double sum(const std::vector<float>& values) {
  double out = 0;
  for (const float x : values) out += double(x);
  return out;
}

TEST(TimeToEvent, TimeAtRiskAndEventsAreWhatRowsHave) {
  const auto data = open(spells(), settings());
  EXPECT_EQ(data->info().target, TargetKind::count);
  EXPECT_TRUE(data->info().has_exposure);
  double time = 0, events = 0;
  for (std::size_t c = 0; c < 2; ++c) {
    const Batch batch = training_batch(*data, c);
    ASSERT_EQ(batch.log_exposure.size(), batch.size);
    events += sum(batch.reals);
    const auto patients = data->groups(c);
    for (std::size_t i = 0; i + 1 < batch.size; ++i) {  // a patient's last piece
      EXPECT_FALSE(batch.reals[i] == 1 && patients[i + 1] == patients[i]);
    }
    for (const float x : batch.log_exposure) time += std::exp(double(x));
  }
  double expected = 0;
  for (int i = 0; i < 60; ++i) expected += 3 + i * 7 % 23 + 5 + i % 11;
  EXPECT_NEAR(time, expected, 1e-3);
  EXPECT_EQ(events, 20);
}

// With the table's own cells, not with the code that made the pieces.
TEST(TimeToEvent, APieceHasItsIntervalAndIntervalsHaveAboutAsManyEvents) {
  const auto data = open(spells(), settings());
  const TableFeatures& features = *data->info().table;
  ASSERT_EQ(features.scale.cuts.size(), 3u);
  const std::vector<Term> terms = terms_of(features);
  ASSERT_EQ(terms.size(), 4u);
  EXPECT_EQ(terms[1].kind, TermKind::interval);
  EXPECT_EQ(terms[1].column, "time");
  EXPECT_THAT(terms[1].name, HasSubstr("vs up to"));
  std::vector<double> events(4), rows(4);
  double pieces = 0;
  for (std::size_t c = 0; c < 2; ++c) {
    const Batch batch = training_batch(*data, c);
    for (std::size_t i = 0; i < batch.size; ++i) {
      std::size_t interval = 0;
      for (std::size_t j = 1; j < 4; ++j) {
        const double raw = double(batch.dense[4 * i + j]) * terms[j].divisor + terms[j].mean;
        ASSERT_TRUE(std::fabs(raw) < 1e-5 || std::fabs(raw - 1) < 1e-5) << raw;
        if (raw > 0.5) interval = j;
      }
      events[interval] += double(batch.reals[i]);
      ++rows[interval];
      ++pieces;
    }
  }
  for (std::size_t j = 0; j < 4; ++j) EXPECT_NEAR(events[j], 5, 2) << j;
  for (std::size_t j = 1; j < 4; ++j) EXPECT_NEAR(terms[j].mean, rows[j] / pieces, 1e-12);
}

TEST(TimeToEvent, APatientsPiecesStayTogetherInEverySplit) {
  DataSettings how = settings();
  how.test_fraction = 0.25;
  const auto data = validation_dataset(open(spells(), how), 0.3);
  // Ages tell patients apart.
  const std::size_t width = data->info().feature_count();
  std::map<float, std::set<int>> parts;
  std::size_t pieces = 0;
  for (std::size_t c = 0; c < 2; ++c) {
    const Batch batch = training_batch(*data, c);
    for (std::size_t i = 0; i < batch.size; ++i) parts[batch.dense[width * i]].insert(0);
    pieces += batch.size;
  }
  const Batch held = test_batch(*data);
  for (std::size_t i = 0; i < held.size; ++i) parts[held.dense[width * i]].insert(1);
  EXPECT_GT(held.size, 10u);
  EXPECT_GT(pieces, 20u);
  for (const auto& [age, in] : parts) EXPECT_EQ(in.size(), 1u) << "a patient was parted";
}

TEST(TimeToEvent, WithoutAPatientASpellsPiecesStillStayTogether) {
  DataSettings how = settings();
  how.group_column.clear();
  how.drop = {"patient"};
  const auto data = open(spells(), how);
  const auto groups = data->groups(0);
  const Batch batch = training_batch(*data, 0);
  ASSERT_EQ(groups.size(), batch.size);
  EXPECT_EQ(std::set<std::uint32_t>(groups.begin(), groups.end()).size(),
            40u);  // of ward B's 20 patients
}

TEST(TimeToEvent, RowsThatComeLaterAreCutAsThoseOfTraining) {
  DataSettings how = settings();
  for (const ColumnScaling scale : {ColumnScaling::pooled, ColumnScaling::none}) {
    how.scale = scale;
    const auto data = open(spells(), how);
    const TableFeatures& features = *data->info().table;
    const TableFeatures kept = parse_table_features(to_json(features), "features.json");
    EXPECT_EQ(kept, features);
    std::string one = "from,until,age\n0,3,30\n3,8,30\n";  // the first patient, of ward B
    const EncodedTable encoded = encode_table(parse_delimited(one, kCsv, "new.csv"), kept);
    const Batch& later = encoded.batch;
    EXPECT_EQ(encoded.rows.size(), 2u);
    EXPECT_EQ(encoded.ends.back(), later.size);
    EXPECT_GT(encoded.ends.front(), 0u);
    const Batch all = training_batch(*data, data->clients()[0].first == "B" ? 0 : 1);
    ASSERT_LE(later.size, all.size);
    EXPECT_TRUE(std::equal(later.dense.begin(), later.dense.end(), all.dense.begin()));
    EXPECT_TRUE(
        std::equal(later.log_exposure.begin(), later.log_exposure.end(), all.log_exposure.begin()));
  }
}

TEST(TimeToEvent, ARowWithoutAStopIsLeftOutOfPredictions) {
  const auto data = open(spells(), settings());
  const DelimitedTable rows =
      parse_delimited("from,until,age\n0,,30\n0,3,30\n3,3,30\n,3,30\n", kCsv, "new.csv");
  const EncodedTable encoded = encode_table(rows, *data->info().table);
  EXPECT_EQ(encoded.rows, std::vector<std::size_t>{1});
  ASSERT_EQ(encoded.left_out.size(), 3u);
  EXPECT_EQ(encoded.left_out[0].why, "until is empty, which is no time after the spell's begin");
  EXPECT_EQ(encoded.left_out[2].why, "from is empty, which is no number");
}

TEST(TimeToEvent, ShardsHoldIt) {
  const auto data = open(spells(), settings());
  const Shard shard{.client = "A", .info = data->info(), .train = training_batch(*data, 0)};
  const Shard read = parse_shard(shard_bytes(shard), "a.shard");
  EXPECT_EQ(*read.info.table, *data->info().table);
  EXPECT_TRUE(read.info.has_exposure);
  EXPECT_EQ(read.train, shard.train);
}

TEST(TimeToEvent, ASpellWithoutTimeIsRefusedWithItsLine) {
  const std::string head = "ward,patient,from,until,died,age\nA,1,0,5,1,40\n";
  EXPECT_EQ(refusal(head + "A,2,5,5,0,41\n"),
            "spells.csv: line 3: until must be a time after 5, where its spell begins, but is 5");
  EXPECT_THAT(refusal(head + "A,2,7,5,0,41\n"), HasSubstr("line 3: until must be a time after 7"));
  DataSettings from_zero = settings();
  from_zero.start_column.clear();
  from_zero.drop = {"from"};
  EXPECT_THAT(refusal(head + "A,2,0,0,0,41\n", from_zero), HasSubstr("a time after 0"));
}

TEST(TimeToEvent, OverlappingSpellsOfAPatientAreRefusedWithTheirLines) {
  const std::string head = "ward,patient,from,until,died,age\nA,1,0,5,1,40\n";
  EXPECT_EQ(refusal(head + "A,2,0,9,0,41\nA,1,4,6,0,40\n"),
            "spells.csv: line 2 and line 4: spells of patient 1 must not overlap, but go from 0 to "
            "5 and from 4 to 6");
  // Another hospital's patient 1 is somebody else, and one spell may follow another at once.
  EXPECT_NO_THROW(open(head + "B,1,4,6,0,40\nA,1,5,6,0,40\n", settings()));
}

TEST(TimeToEvent, ARowWithoutATimeIsLeftOutAndCounted) {
  const auto data = open(spells() + "A,99,0,,1,40\nA,98,x,4,1,40\n", settings());
  EXPECT_EQ(data->info().skipped_records, 2u);
  EXPECT_THAT(data->info().first_skipped, HasSubstr("until is empty"));
}

TEST(TimeToEvent, WhatARecipeMustSayIsAskedFor) {
  DataSettings wrong = settings();
  wrong.stop_column.clear();
  EXPECT_THAT(refusal(spells(), wrong), HasSubstr("data.stop_column must name the column"));
  wrong = settings();
  wrong.label = LabelKind::yes_no;
  EXPECT_THAT(refusal(spells(), wrong), HasSubstr("data.start_column must be empty unless"));
  wrong = settings();
  wrong.features = {"age", "until"};
  EXPECT_THAT(refusal(spells(), wrong), HasSubstr("is also the stop"));
  wrong = settings();
  wrong.label_positive = {"yes"};
  EXPECT_THAT(refusal(spells(), wrong),
              HasSubstr("values of column died, but no row has yes; it has 0, 1"));
  wrong.label_negative = {"*"};
  EXPECT_THAT(refusal(spells(), wrong), HasSubstr("ended with the event, but says so of none"));
}

}  // namespace
}  // namespace fedep
