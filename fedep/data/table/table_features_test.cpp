#include "fedep/data/table/table_features.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fedep/data/table/tabular.h"
#include "fedep/data/test_batches.h"
#include "fedep/data/test_files.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

using testing::HasSubstr;

DelimitedTable table_of(const std::string& text) { return parse_delimited(text, kCsv, "new.csv"); }

const TableSpec kSpec{.client_column = "ward",
                      .label_column = "died",
                      .positive = {"yes"},
                      .numbers = {"age", "sodium"},
                      .categories = {"unit"},
                      .missing_in = {{"sodium", {"0"}}}};

std::unique_ptr<Dataset> wards() {
  std::string text = "ward,died,age,sodium,unit\n";
  for (int i = 0; i < 60; ++i) {
    text += fmt::format("{},{},{},{},{}\n", i % 3 ? "A" : "B", i % 2 ? "yes" : "no", 20 + i,
                        i % 7 ? 130 + i % 11 : 0, i % 5 ? "ICU" : "CCU");
  }
  return tabular_dataset(parse_delimited(text, kCsv, "wards.csv"), kSpec, {.name = "wards"});
}

// As files were before they had a checksum.
std::string version_1(const TableFeatures& features) {
  std::string text = to_json(features);
  text.replace(text.find("\"version\": 2"), 12, "\"version\": 1");
  const std::size_t begin = text.find(",\n \"xxh3\"");
  return text.replace(begin, text.size() - begin, "\n}\n");
}

TEST(TableFeatures, PrepareAlikeIfOnlyRoundingTellsThemApart) {
  const auto data = wards();
  const TableFeatures& features = *data->info().table;
  const auto alike = [&](const auto& change) {
    TableFeatures other = features;
    change(other);
    return prepare_alike(features, other);
  };
  EXPECT_TRUE(alike([](TableFeatures& f) { f.scale.numbers[0].mean *= 1 + 1e-13; }));
  EXPECT_TRUE(alike([](TableFeatures& f) { f.far *= 2; }));  // makes no feature
  EXPECT_FALSE(alike([](TableFeatures& f) { f.scale.numbers[0].mean *= 1.001; }));
  EXPECT_FALSE(alike([](TableFeatures& f) { f.scale.numbers[1].deviation *= 1.001; }));
  EXPECT_FALSE(alike([](TableFeatures& f) { std::swap(f.spec.numbers[0], f.spec.numbers[1]); }));
  EXPECT_FALSE(alike([](TableFeatures& f) { f.scale.categories[0].baseline = "other"; }));
  EXPECT_FALSE(alike([](TableFeatures& f) { f.scale.categories[0].others[0].first = "other"; }));
  EXPECT_FALSE(alike([](TableFeatures& f) { f.scale.numbers.pop_back(); }));
}

TEST(TableFeatures, RowsThatComeLaterAreEncodedAsTrainingRowsWere) {
  const auto data = wards();
  const TableFeatures& features = *data->info().table;
  std::string text = "age,unit,sodium\n";  // another order, neither client nor label
  for (int i = 0; i < 60; ++i) {
    text += fmt::format("{},{},{}\n", 20 + i, i % 5 ? "ICU" : "CCU", i % 7 ? 130 + i % 11 : 0);
  }
  const Batch all = encode_table(table_of(text), features).batch;
  ASSERT_EQ(all.size, 60u);
  // Every held-out row of the data set is among them, bit by bit.
  const Batch test = test_batch(*data);
  const std::size_t width = data->info().feature_count();
  for (std::size_t i = 0; i < test.size; ++i) {
    const auto row = test.dense.begin() + long(i * width);
    EXPECT_NE(std::search(all.dense.begin(), all.dense.end(), row, row + long(width)),
              all.dense.end());
  }
}

TEST(TableFeatures, ComeBackFromTheirFile) {
  const auto data = wards();
  const TableFeatures& features = *data->info().table;
  EXPECT_EQ(parse_table_features(to_json(features), "f"), features);
  const DatasetInfo info = info_of(features);
  EXPECT_EQ(info.feature_names, data->info().feature_names);
  EXPECT_EQ(info.features, data->info().features);
  EXPECT_EQ(info.outputs, data->info().outputs);
}

TEST(TableFeatures, OfADamagedFileAreRefused) {
  const auto data = wards();
  const std::string text = to_json(*data->info().table);
  const auto refusal_of = [](const std::string& changed) {
    return message_of<InputError>([&] { parse_table_features(changed, "f.json"); });
  };
  std::string other = text;
  other.replace(other.find("\"mean\": "), 9, "\"mean\": 1");
  EXPECT_THAT(refusal_of(other), HasSubstr("f.json: must have the checksum of what it says"));
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string flipped = text;
    flipped[i] = char(flipped[i] ^ 1);
    if (text[i] == ' ' || text[i] == '\n') continue;  // of the layout
    const std::string refused = refusal_of(flipped);
    if (refused.empty()) {  // a digit that no double tells from the other
      EXPECT_EQ(parse_table_features(flipped, "f"), *data->info().table) << i;
    } else {
      EXPECT_THAT(refused, HasSubstr("f.json")) << i;
    }
    if (i % 7 == 0) {
      EXPECT_THAT(refusal_of(text.substr(0, i)), HasSubstr("f.json")) << i;
    }
  }
}

TEST(TableFeatures, OfVersion1HaveNoChecksum) {
  const auto data = wards();
  EXPECT_EQ(parse_table_features(version_1(*data->info().table), "f"), *data->info().table);
}

TEST(TableFeatures, OneInTwentyHeldOutRowsIsFar) {
  const auto data = wards();
  const double far = data->info().table->far;
  const Batch test = test_batch(*data);
  const std::size_t width = data->info().feature_count();
  std::size_t beyond = 0;
  for (std::size_t i = 0; i < test.size; ++i) {
    beyond += distance(std::span(test.dense).subspan(i * width, width)) > far;
  }
  EXPECT_LE(double(beyond), 0.05 * double(test.size));
}

TEST(TableFeatures, AQuantileIsTheSmallestValueThatThePartDoesNotExceed) {
  EXPECT_EQ(quantile({4, 1, 3, 2}, 0.5), 2);
  EXPECT_EQ(quantile({4, 1, 3, 2}, 0.95), 4);
  EXPECT_EQ(quantile({4, 1, 3, 2}, 0), 1);
  EXPECT_TRUE(std::isnan(quantile({}, 0.5)));
}

TEST(TableFeatures, MissingValuesAndNewCategoriesStandAtTheMean) {
  const auto data = wards();
  const DelimitedTable table = table_of("age,sodium,unit\n?,0,ICU\n?,NA,Ward 9\n");
  const Batch rows = encode_table(table, *data->info().table).batch;
  EXPECT_EQ(rows.dense[0], 0.0f);
  EXPECT_EQ(rows.dense[1], 0.0f);
  EXPECT_NE(rows.dense[2], 0.0f);
  EXPECT_EQ(rows.dense[5], 0.0f);
}

// The year is the same everywhere, nobody has a weight, and there is one site.
std::unique_ptr<Dataset> with_constants() {
  std::string text = "ward,died,age,year,weight,site\n";
  for (int i = 0; i < 60; ++i) {
    text += fmt::format("{},{},{},2015.1,,north\n", i % 3 ? "A" : "B", i % 2 ? "yes" : "no", i);
  }
  return tabular_dataset(parse_delimited(text, kCsv, "wards.csv"),
                         {.client_column = "ward",
                          .label_column = "died",
                          .positive = {"yes"},
                          .numbers = {"age", "year", "weight"},
                          .categories = {"site"},
                          .intercept = true},
                         {.name = "wards"});
}

TEST(TableFeatures, ColumnsThatDoNotVaryAreNamed) {
  const auto data = with_constants();
  const ConstantColumns constant = constant_columns(*data->info().table);
  EXPECT_EQ(constant.names, (std::vector<std::string>{"year", "weight", "site"}));
  EXPECT_EQ(constant.features, (std::vector<std::size_t>{2, 3}));
  EXPECT_EQ(data->info().feature_names[2], "year");
  EXPECT_TRUE(constant_columns(*wards()->info().table).names.empty());
}

TEST(TableFeatures, AColumnThatDoesNotVaryIsZeroInRowsThatComeLater) {
  const auto data = with_constants();
  const TableFeatures& features = *data->info().table;
  const DelimitedTable later = table_of(
      "age,year,weight,site\n30,2015.1,,north\n30,2020,80,north\n30,,,north\n30,2015.1,70,north\n");
  const Batch rows = encode_table(later, features).batch;
  const std::size_t width = data->info().feature_count();
  for (std::size_t i = 1; i < rows.size; ++i) {
    EXPECT_TRUE(std::equal(rows.dense.begin(), rows.dense.begin() + long(width),
                           rows.dense.begin() + long(i * width)));
  }
  EXPECT_EQ(parse_table_features(to_json(features), "f"), features);
}

// Nobody had said then whether a column varies.
TEST(TableFeatures, FilesOfBeforeAreReadAsTheyWere) {
  const auto data = with_constants();
  std::string text = version_1(*data->info().table);
  for (auto at = text.find("\"varies\""); at != text.npos; at = text.find("\"varies\"")) {
    const auto comma = text.rfind(',', at);
    text.erase(comma, text.find('}', at) - comma);
  }
  EXPECT_TRUE(constant_columns(parse_table_features(text, "f")).features.empty());
}

TEST(TableFeatures, ABadRowIsLeftOutByNameAndChangesNoOther) {
  const auto data = wards();
  const TableFeatures& features = *data->info().table;
  const EncodedTable good =
      encode_table(table_of("age,sodium,unit\n30,135,ICU\n50,140,CCU\n"), features);
  const EncodedTable mixed = encode_table(table_of("age,sodium,unit\nold,135,ICU\n30,135,ICU\n"
                                                   "1,1e300,ICU\n50,140,CCU\nnan,2,ICU\n"),
                                          features);
  EXPECT_EQ(mixed.batch, good.batch);
  EXPECT_TRUE(good.left_out.empty());
  EXPECT_EQ(mixed.rows, (std::vector<std::size_t>{1, 3}));
  ASSERT_EQ(mixed.left_out.size(), 3u);
  EXPECT_EQ(mixed.left_out[1].row, 2u);
  EXPECT_EQ(mixed.left_out[0].why, "age is old, which is no number");
  EXPECT_EQ(mixed.left_out[1].why, "sodium is 1e300, which cannot be scaled");
  EXPECT_EQ(mixed.left_out[2].why, "age is nan, which is no number");
  EXPECT_EQ(encode_table(table_of("age,sodium,unit\n"), features).batch.size, 0u);
}

TEST(TableFeatures, AFileThatIsNoneIsRefused) {
  const auto refusal = [&](const std::string& text) {
    return message_of<InputError>([&] { encode_table(table_of(text), *wards()->info().table); });
  };
  EXPECT_EQ(refusal("age,unit\n1,ICU\n"), "new.csv lacks the column sodium");
  EXPECT_EQ(refusal("unit\nICU\n"), "new.csv lacks the columns age, sodium");
  EXPECT_EQ(refusal("age,Sodium,unit\n1,2,ICU\n"),
            "new.csv lacks the column sodium; did you mean Sodium?");
  EXPECT_EQ(refusal("Age,unit\n1,ICU\n"),
            "new.csv lacks the columns age, sodium; for age did you mean Age?");
  EXPECT_THAT(refusal("age,sodium,unit\n1,2\n1,2\n"),
              HasSubstr("new.csv:2: expected records of 3 fields, but 2 of 2 are bad"));
  EXPECT_THAT(refusal("age;sodium;unit\n1;2;ICU\n"), HasSubstr("seem to be separated by ;"));
  EXPECT_THAT(refusal("age;sodium, mmol;unit\n1;2;ICU\n"), HasSubstr("seem to be separated by ;"));
  EXPECT_THAT(refusal("age\tsodium\tunit\n1\t2\tICU\n"), HasSubstr("separated by a tab"));
  for (const char* text : {"", "{}", "[1]", "{\"format\":\"fedep.features\",\"version\":1}"}) {
    EXPECT_THROW(parse_table_features(text, "features.json"), InputError);
  }
}

TEST(TableFeatures, ATextThatNestsWithoutEndIsRefused) {
  const std::string deep =
      R"({"format":)" + std::string(300'000, '[') + std::string(300'000, ']') + "}";
  EXPECT_NE(message_of<InputError>([&] { parse_table_features(deep, "features.json"); }), "");
}

}  // namespace
}  // namespace fedep
