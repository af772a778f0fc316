// Tables whose outcome is a count, with and without exposures.
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "fedep/data/fingerprint.h"
#include "fedep/data/table/table_features.h"
#include "fedep/data/table/tabular.h"
#include "fedep/data/table/write_table.h"
#include "fedep/data/test_batches.h"
#include "fedep/message/error.h"
#include "fedep/message/test_folder.h"

namespace fedep {
namespace {

DelimitedTable table_of(const std::string& text) {
  return parse_delimited(text, kCsv, "falls.csv");
}

DataSettings settings_of(const std::string& exposure = "days") {
  DataSettings settings{.name = "tabular", .path = "falls.csv", .test_fraction = 0};
  settings.client_column = "ward";
  settings.label_column = "falls";
  settings.label = LabelKind::count;
  settings.exposure_column = exposure;
  return settings;
}

const std::string kFalls = "ward,falls,days,age\nA,0,10,70\nA,3,20.5,80\nB,1.0,1,60\n";

std::unique_ptr<Dataset> open(const std::string& text, const DataSettings& settings) {
  const DelimitedTable table = table_of(text);
  return tabular_dataset(table, table_spec(settings, table), settings);
}

std::string complaint(const std::string& text, const DataSettings& settings = settings_of()) {
  return message_of<InputError>([&] { open(text, settings); });
}

TEST(CountTable, CountsAndLogsOfExposuresComeWithTheRows) {
  const auto data = open(kFalls, settings_of());
  EXPECT_EQ(data->info().target, TargetKind::count);
  EXPECT_EQ(data->info().outputs, 1u);
  EXPECT_TRUE(data->info().has_exposure);
  EXPECT_EQ(data->info().feature_names, (std::vector<std::string>{"age"}));  // days is no feature
  const Batch first = training_batch(*data, 0);
  EXPECT_EQ(first.reals, (std::vector<float>{0, 3}));
  EXPECT_EQ(first.log_exposure, (std::vector<float>{float(std::log(10.0)), float(std::log(20.5))}));
  EXPECT_TRUE(first.labels.empty());
  EXPECT_EQ(training_batch(*data, 1).log_exposure, (std::vector<float>{0}));
}

TEST(CountTable, WithoutAnExposureColumnThereIsNone) {
  const auto data = open(kFalls, settings_of(""));
  EXPECT_FALSE(data->info().has_exposure);
  EXPECT_TRUE(training_batch(*data, 0).log_exposure.empty());
  EXPECT_EQ(data->info().feature_names, (std::vector<std::string>{"days", "age"}));
  EXPECT_NE(fingerprint(*data), fingerprint(*open(kFalls, settings_of())));
}

TEST(CountTable, WhatIsNoCountIsRefusedWithItsLine) {
  EXPECT_EQ(complaint(kFalls + "B,-1,5,70\n"),
            "falls.csv: line 5: falls must be a count (0, 1, 2, … up to 16777216), but is -1");
  EXPECT_EQ(complaint(kFalls + "B,2.5,5,70\n"),
            "falls.csv: line 5: falls must be a count (0, 1, 2, … up to 16777216), but is 2.5");
  EXPECT_NE(complaint(kFalls + "B,16777217,5,70\n").find("but is 16777217"), std::string::npos);
}

TEST(CountTable, AnExposureThatIsNotPositiveIsRefusedWithItsLine) {
  EXPECT_EQ(complaint(kFalls + "B,1,0,70\n"),
            "falls.csv: line 5: days must be a positive exposure, but is 0");
  EXPECT_EQ(complaint(kFalls + "B,1,-3,70\n"),
            "falls.csv: line 5: days must be a positive exposure, but is -3");
}

TEST(CountTable, WhatIsMissingIsLeftOutAndCounted) {
  const auto data = open(kFalls + "B,,5,70\nB,1,NA,70\nB,many,5,70\n", settings_of());
  EXPECT_EQ(data->info().skipped_records, 3u);
  EXPECT_EQ(data->clients()[1].second, 1u);
}

TEST(CountTable, AnExposureBelongsToACount) {
  DataSettings settings = settings_of();
  settings.label = LabelKind::number;
  EXPECT_EQ(complaint(kFalls, settings),
            "data set tabular: data.exposure_column must be empty unless data.label is \"count\", "
            "but is days");
  settings = settings_of();
  settings.features = {"age", "days"};
  EXPECT_NE(complaint(kFalls, settings).find("must not be a feature, but is also the exposure"),
            std::string::npos);
}

TEST(CountTable, RowsThatComeLaterBringTheirExposures) {
  const auto data = open(kFalls, settings_of());
  const TableFeatures features = parse_table_features(to_json(*data->info().table), "f");
  EXPECT_EQ(features, *data->info().table);
  EXPECT_TRUE(info_of(features).has_exposure);
  const EncodedTable rows = encode_table(table_of("age,days\n70,10\n70,0\n80,2\n9,\n"), features);
  EXPECT_EQ(rows.batch.log_exposure,
            (std::vector<float>{float(std::log(10.0)), float(std::log(2.0))}));
  EXPECT_EQ(rows.rows, (std::vector<std::size_t>{0, 2}));
  ASSERT_EQ(rows.left_out.size(), 2u);
  EXPECT_EQ(rows.left_out[0].why, "days is 0, which is no positive number");
  EXPECT_EQ(rows.left_out[1].why, "days is empty, which is no positive number");
}

TEST(CountTable, ReadsBackFromTheTableThatIsWrittenOfIt) {
  const TemporaryFolder folder;
  DataSettings unscaled = settings_of();
  unscaled.scale = ColumnScaling::none;
  const auto data = open(kFalls, unscaled);
  std::string text;
  write_table(*data, [&](std::string_view lines) { text += lines; });
  folder.write("falls.csv", text);
  DataSettings settings = unscaled;
  settings.client_column = "client";
  settings.label_column = "label";
  settings.test_column = "part";
  settings.exposure_column = "exposure";
  EXPECT_EQ(fingerprint(*open_tabular(settings, 1, folder.path())), fingerprint(*data));
}

}  // namespace
}  // namespace fedep
