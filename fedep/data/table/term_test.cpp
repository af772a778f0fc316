#include "fedep/data/table/term.h"

#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fedep/data/table/table_features.h"
#include "fedep/data/table/tabular.h"
#include "fedep/data/test_batches.h"

namespace fedep {
namespace {

using testing::ElementsAre;

DelimitedTable wards_table() {
  std::string text = "ward,died,age,unit\n";
  for (int i = 0; i < 60; ++i) {
    text += fmt::format("{},{},{},{}\n", i % 3 ? "A" : "B", i % 2, 20 + i * i % 50,
                        i % 5 == 0   ? "CCU"
                        : i % 7 == 0 ? "ER"
                                     : "ICU");
  }
  return parse_delimited(text, kCsv, "wards.csv");
}

std::unique_ptr<Dataset> wards(bool intercept = false) {
  const TableSpec spec{.client_column = "ward",
                       .label_column = "died",
                       .numbers = {"age"},
                       .categories = {"unit"},
                       .intercept = intercept};
  return tabular_dataset(wards_table(), spec, {.name = "wards"});
}

// What a term's raw feature is in a row of the table.
double raw(const Term& term, const DelimitedTable& table, std::size_t row) {
  const std::string& cell = table.rows[row][table.column(term.column)];
  return term.kind == TermKind::category ? double(cell == term.level) : std::stod(cell);
}

TEST(Terms, AFeatureIsItsRawOneCentredAndDivided) {
  const auto data = wards();
  const DelimitedTable table = wards_table();
  const std::vector<Term> terms = terms_of(*data->info().table);
  const Batch batch = encode_table(table, *data->info().table).batch;
  ASSERT_EQ(terms.size(), 3u);
  for (std::size_t i = 0; i < batch.size; ++i) {
    for (std::size_t j = 0; j < terms.size(); ++j) {
      const double z = (raw(terms[j], table, i) - terms[j].mean) / terms[j].divisor;
      EXPECT_NEAR(z, double(batch.dense[i * terms.size() + j]), 1e-5) << terms[j].name;
    }
  }
}

TEST(Terms, HaveTheFeaturesNamesInTheirOrder) {
  const auto data = wards(true);
  std::vector<std::string> names;
  for (const Term& term : terms_of(*data->info().table)) names.push_back(term.name);
  EXPECT_EQ(names, data->info().feature_names);
  EXPECT_THAT(names, ElementsAre("intercept", "age", "unit=CCU vs ICU", "unit=ER vs ICU"));
}

TEST(Terms, SayColumnLevelAndReference) {
  const std::vector<Term> terms = terms_of(*wards(true)->info().table);
  EXPECT_EQ(terms[0], (Term{.kind = TermKind::intercept, .name = "intercept"}));
  EXPECT_EQ(terms[1].kind, TermKind::number);
  EXPECT_EQ(terms[1].column, "age");
  EXPECT_EQ(terms[1].level, "");
  EXPECT_EQ(terms[3].kind, TermKind::category);
  EXPECT_EQ(terms[3].column, "unit");
  EXPECT_EQ(terms[3].level, "ER");
  EXPECT_EQ(terms[3].reference, "ICU");
}

TEST(Terms, OfAColumnThatDoesNotVarySaySo) {
  TableFeatures features{.spec = {.numbers = {"age", "year"}}};
  features.scale.numbers = {{40, 12}, {2020, 1, false}};
  const std::vector<Term> terms = terms_of(features);
  EXPECT_TRUE(terms[0].varies);
  EXPECT_FALSE(terms[1].varies);
}

TEST(Terms, WithoutAClientThereAreNoLevels) {
  EXPECT_TRUE(terms_of(TableFeatures{.spec = {.categories = {"unit"}}}).empty());
}

}  // namespace
}  // namespace fedep
