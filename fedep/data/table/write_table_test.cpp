#include "fedep/data/table/write_table.h"

#include <gtest/gtest.h>

#include "fedep/data/fingerprint.h"
#include "fedep/data/made_up/regression.h"
#include "fedep/data/made_up/synthetic.h"
#include "fedep/data/memory_dataset.h"
#include "fedep/data/table/tabular.h"
#include "fedep/data/test_batches.h"
#include "fedep/data/test_files.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

std::string table_of(const Dataset& data) {
  std::string text;
  write_table(data, [&](std::string_view lines) { text += lines; });
  return text;
}

DataSettings read_back(LabelKind label) {
  DataSettings settings{.name = "tabular", .path = "data.csv"};
  settings.client_column = "client";
  settings.label_column = "label";
  settings.label = label;
  settings.test_column = "part";
  settings.scale = ColumnScaling::none;
  return settings;
}

TEST(WriteTable, ReadsBackAsTheSameExamplesBitByBit) {
  const TemporaryFolder folder;
  for (const std::uint64_t seed : {1, 2, 3}) {
    const auto data = open_synthetic({.name = "synthetic", .dimension = 7}, seed);
    folder.write("data.csv", table_of(*data));
    const auto again = open_tabular(read_back(LabelKind::classes), seed, folder.path());
    EXPECT_EQ(again->clients(), data->clients());
    EXPECT_EQ(again->info().outputs, kSyntheticClasses);
    EXPECT_EQ(again->info().skipped_records, 0u);
    EXPECT_EQ(fingerprint(*again), fingerprint(*data));
  }
}

TEST(WriteTable, ReadsBackNumbersToPredictToo) {
  const TemporaryFolder folder;
  const auto data = open_regression({.name = "regression", .clients = 4, .dimension = 3}, 1, "");
  folder.write("data.csv", table_of(*data));
  const auto again = open_tabular(read_back(LabelKind::number), 1, folder.path());
  EXPECT_EQ(fingerprint(*again), fingerprint(*data));
}

TEST(WriteTable, QuotesNamesAsCsvDoes) {
  ClientRows clients;
  clients.add("St. \"Mary\", London", 2);
  Batch rows;
  rows.size = 2;
  rows.dense = {0.1f, -2.5f};
  rows.labels = {0, 1};
  DatasetInfo info;
  info.features = {1};
  info.outputs = 2;
  info.feature_names = {"age, years"};
  info.output_names = {"no", "yes"};
  const auto data = memory_dataset(info, {std::move(clients), batch_rows(rows)},
                                   {ClientRows{}, batch_rows(Batch{})});
  EXPECT_EQ(table_of(*data),
            "client,part,label,\"age, years\"\n"
            "\"St. \"\"Mary\"\", London\",train,no,0.10000000149011612\n"
            "\"St. \"\"Mary\"\", London\",train,yes,-2.5\n");
}

TEST(WriteTable, RefusesWhatIsNoTable) {
  DatasetInfo info;
  info.features = {3};
  info.sparse = true;
  ClientRows clients;
  clients.add("a", 1);
  Batch rows;
  rows.size = 1;
  rows.sparse = {.offsets = {0, 1}, .columns = {2}, .values = {1}};
  rows.labels = {0};
  const auto data = memory_dataset(info, {std::move(clients), batch_rows(rows)},
                                   {ClientRows{}, batch_rows(Batch{})});
  EXPECT_THROW(table_of(*data), InputError);
}

TEST(TestColumn, SaysWhichRowsAreHeldOutAndWhatSaysNeitherIsLeftOut) {
  const TemporaryFolder folder;
  folder.write("data.csv",
               "client,part,label,x\na,train,0,1\na,test,1,2\na,train,1,3\nb,train,1,4\n"
               "b, test ,0,5\nb,maybe,1,6\n");
  const auto data = open_tabular(read_back(LabelKind::classes), 1, folder.path());
  EXPECT_EQ(data->clients(),
            (std::vector<std::pair<std::string, std::size_t>>{{"a", 2}, {"b", 1}}));
  EXPECT_EQ(data->info().skipped_records, 1u);
  const Batch test = test_batch(*data);
  EXPECT_EQ(test.dense, (std::vector<float>{2, 5}));
  EXPECT_EQ(test.labels, (std::vector<std::int32_t>{1, 0}));
}

TEST(TestColumn, IsNoFeature) {
  const TemporaryFolder folder;
  folder.write("data.csv", "client,part,label,x\na,train,0,1\na,train,1,2\n");
  DataSettings settings = read_back(LabelKind::classes);
  settings.features = {"x", "part"};
  EXPECT_NE(message_of<InputError>([&] {
              open_tabular(settings, 1, folder.path());
            }).find("column part must not be a feature, but is also the test column"),
            std::string::npos);
  settings.features.clear();
  settings.test_column = "none";
  EXPECT_THROW(open_tabular(settings, 1, folder.path()), InputError);
}

TEST(Scale, IsLeftAsItIsWhereTheRecipeSaysSo) {
  const TemporaryFolder folder;
  folder.write("data.csv",
               "client,part,label,x,unit\na,train,0,10,ICU\na,train,1,,CCU\nb,train,1,40,ICU\n");
  DataSettings settings = read_back(LabelKind::classes);
  settings.categories = {"unit"};
  const auto data = open_tabular(settings, 1, folder.path());
  Batch batch;
  data->train_batch(0, std::vector<std::uint32_t>{0, 1}, nullptr, batch);
  EXPECT_EQ(batch.dense, (std::vector<float>{10, 0, 0, 1}));  // x, unit=CCU vs ICU
  settings.scale = ColumnScaling::pooled;
  open_tabular(settings, 1, folder.path())
      ->train_batch(0, std::vector<std::uint32_t>{0}, nullptr, batch);
  EXPECT_FLOAT_EQ(batch.dense[0], -1);  // (10 - 25) / 15
}

}  // namespace
}  // namespace fedep
