#include "fedep/data/table/screen/table_screen.h"

#include <cmath>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fedep/data/table/tabular.h"
#include "fedep/data/test_batches.h"
#include "fedep/message/error.h"
#include "fedep/random/stream.h"

namespace fedep {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using Tables = std::vector<std::vector<TableRow>>;

const std::vector<std::string> kColumns = {"age", "body weight"};

Tables hospitals() {
  Stream stream({.seed = 2, .purpose = Purpose::test});
  Tables out(10);
  for (auto& rows : out) {
    for (int i = 0; i < 200; ++i) {
      rows.push_back({{60 + 16 * stream.normal(), 84 + 20 * stream.normal()}, {}});
    }
  }
  return out;
}

ScreenedScale screened(const Tables& tables) {
  std::vector<std::string> ids;
  for (std::size_t c = 0; c < tables.size(); ++c) ids.push_back("h" + std::to_string(c));
  return screened_scale(ids, kColumns,
                        [&](std::size_t client, std::size_t column, std::vector<double>& values) {
                          values.clear();
                          for (const TableRow& row : tables[client]) {
                            if (!std::isnan(row.numbers[column]))
                              values.push_back(row.numbers[column]);
                          }
                        });
}

TableScale scale_of_all(const Tables& tables) {
  std::vector<ClientReport> reports;
  for (const auto& rows : tables) reports.push_back(report(rows));
  return pooled_scale(reports);
}

std::string refusal(const Tables& tables) {
  try {
    check_harmless(screened(tables), "stays.csv");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(TableScreen, OfGoodTablesChangesNoBit) {
  const Tables tables = hospitals();
  const ScreenedScale screen = screened(tables);
  EXPECT_THAT(screen.suspicions, IsEmpty());
  EXPECT_EQ(refusal(tables), "");
  const TableScale robust{robust_scale(screen), {}}, plain = scale_of_all(tables);
  for (std::size_t j = 0; j < 2; ++j) {
    EXPECT_EQ(robust.numbers[j].mean, plain.numbers[j].mean);
    EXPECT_EQ(robust.numbers[j].deviation, plain.numbers[j].deviation);
    for (const auto& rows : tables) {
      for (const TableRow& row : rows) {
        std::vector<float> a, b;
        encode(row, robust, a);
        encode(row, plain, b);
        EXPECT_EQ(a, b);
      }
    }
  }
}

TEST(TableScreen, RefusesByNameWhatOneRowDecides) {
  Tables tables = hospitals();
  tables[4][11].numbers[0] = 1e6;
  const std::string line = refusal(tables);
  EXPECT_THAT(line, HasSubstr("stays.csv: column age of client h4: 1 of 200 values lies beyond"));
  EXPECT_THAT(line, HasSubstr("1e+06"));
  EXPECT_THAT(line, HasSubstr("100 % of the column's variance"));
  EXPECT_THAT(line, HasSubstr("data.scale = \"robust\""));
}

TEST(TableScreen, RefusesByNameAClientWithOtherUnits) {
  Tables tables = hospitals();
  for (TableRow& row : tables[7]) row.numbers[1] *= 2.2046;
  const std::string line = refusal(tables);
  EXPECT_THAT(line, HasSubstr("column \"body weight\" of client h7: its median is"));
  EXPECT_THAT(line, HasSubstr("as if in other units"));
  EXPECT_THAT(line, HasSubstr("\"robust\" take the client's column as missing"));
}

TEST(TableScreen, RobustIsTheScaleWithoutTheBadValues) {
  Tables tables = hospitals();
  tables[4][11].numbers[0] = std::numeric_limits<double>::quiet_NaN();
  for (TableRow& row : tables[7]) row.numbers[1] = std::numeric_limits<double>::quiet_NaN();
  const TableScale without = scale_of_all(tables);
  tables[4][11].numbers[0] = -1e200;  // whose square no double holds
  for (TableRow& row : tables[7]) row.numbers[1] = 5000;
  const ScreenedScale screen = screened(tables);
  ASSERT_EQ(screen.suspicions.size(), 2u);
  const TableScale robust{robust_scale(screen), {}};
  for (std::size_t j = 0; j < 2; ++j) {
    EXPECT_EQ(robust.numbers[j].mean, without.numbers[j].mean);
    EXPECT_EQ(robust.numbers[j].deviation, without.numbers[j].deviation);
  }
  EXPECT_TRUE(screen.screens[1].is_stranger(7));
  EXPECT_FALSE(screen.screens[0].is_stranger(7));
  std::vector<float> x;
  encode(tables[4][11], robust, x);
  EXPECT_EQ(x[0], 0.0f);
}

TEST(TableScreen, SaysWhatItSuspectsWhereThatDoesNotMatter) {
  Tables tables = hospitals();
  for (int more = 0; more < 4; ++more) {
    const Tables copy = tables;
    tables.insert(tables.end(), copy.begin(), copy.end());
  }
  tables[0][0].numbers[0] = 60 + 16 * 20;  // of 32,000 rows
  EXPECT_EQ(refusal(tables), "");
  const auto lines = told(screened(tables).suspicions, false);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], HasSubstr("column age of client h0: 1 of 200 values lies beyond"));
  EXPECT_THAT(lines[0], HasSubstr("too little to matter"));
  EXPECT_THAT(told(screened(tables).suspicions, true)[0], HasSubstr("; taken as missing"));
}

TEST(TabularScreen, ARobustScaleForgetsTheColumnOfAStranger) {
  Tables tables = hospitals();
  for (TableRow& row : tables[7]) row.numbers[1] *= 2.2046;
  std::string text = "hospital,died,age,weight\n";
  for (std::size_t c = 0; c < tables.size(); ++c) {
    for (std::size_t i = 0; i < tables[c].size(); ++i) {
      const auto& numbers = tables[c][i].numbers;
      text += fmt::format("h{},{},{},{}\n", c, i % 2, numbers[0], numbers[1]);
    }
  }
  const DelimitedTable table = parse_delimited(text, kCsv, "stays.csv");
  DataSettings settings{.name = "tabular"};
  settings.scale = ColumnScaling::robust;
  settings.client_column = "hospital";
  settings.label_column = "died";
  const auto data = tabular_dataset(table, table_spec(settings, table), settings);
  const auto weights_are_missing = [](const Batch& rows, std::size_t begin, std::size_t end) {
    bool all = true;
    for (std::size_t i = begin; i < end; ++i) all = all && rows.dense[2 * i + 1] == 0.f;
    return all;
  };
  const Batch test = test_batch(*data);
  const std::size_t each = test.size / tables.size();
  for (std::size_t c = 0; c < tables.size(); ++c) {
    const Batch train = training_batch(*data, c);
    EXPECT_EQ(weights_are_missing(train, 0, train.size), c == 7) << c;
    EXPECT_EQ(weights_are_missing(test, c * each, (c + 1) * each), c == 7) << c;
  }
}

}  // namespace
}  // namespace fedep
