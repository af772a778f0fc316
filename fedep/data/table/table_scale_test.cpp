#include "fedep/data/table/table_scale.h"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "fedep/message/error.h"
#include "fedep/random/stream.h"

namespace fedep {
namespace {

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();
using Table = std::vector<TableRow>;

Table random_table(std::uint32_t which, std::size_t rows) {
  Stream stream({.seed = 1, .purpose = Purpose::test, .round = which});
  Table out(rows);
  for (TableRow& row : out) {
    // A blood pressure, a year, and a rare value; one in five is missing.
    for (const auto& [mean, deviation] : {std::pair{120.0, 20.0}, {2015.0, 0.5}, {0.0, 1e-3}}) {
      const double value = mean + deviation * (stream.normal() + which);
      row.numbers.push_back(stream.uniform() < 0.2 ? kMissing : value);
    }
    const double u = stream.uniform();
    row.categories = {u < 0.1   ? ""
                      : u < 0.6 ? "b"
                      : u < 0.8 ? "a"
                                : "client " + std::to_string(which)};
  }
  return out;
}

TEST(TableScale, SumsGiveThePooledStatistics) {
  const std::vector<Table> clients = {random_table(0, 300), random_table(1, 7),
                                      random_table(2, 90)};
  std::vector<ClientReport> reports;
  Table pooled;
  for (const Table& client : clients) {
    reports.push_back(report(client));
    pooled.insert(pooled.end(), client.begin(), client.end());
  }
  const TableScale scale = pooled_scale(reports);
  for (std::size_t j = 0; j < 3; ++j) {
    double n = 0, mean = 0, variance = 0;
    for (const TableRow& row : pooled) {
      if (std::isnan(row.numbers[j])) continue;
      n += 1;
      mean += row.numbers[j];
    }
    mean /= n;
    for (const TableRow& row : pooled) {
      if (!std::isnan(row.numbers[j])) variance += std::pow(row.numbers[j] - mean, 2) / n;
    }
    EXPECT_NEAR(scale.numbers[j].mean, mean, 1e-6 * std::sqrt(variance)) << j;
    EXPECT_NEAR(scale.numbers[j].deviation / std::sqrt(variance), 1, 1e-6) << j;
  }
}

TEST(TableScale, ScaledColumnsHaveMeanZeroAndDeviationOne) {
  const Table rows = random_table(0, 500);
  const TableScale scale = pooled_scale(std::vector{report(rows)});
  const std::size_t width = 3 + scale.categories[0].others.size();
  std::vector<double> sum(width), squares(width), known(width);
  for (const TableRow& row : rows) {
    std::vector<float> x;
    encode(row, scale, x);
    ASSERT_EQ(x.size(), width);
    for (std::size_t j = 0; j < width; ++j) {
      const bool missing = j < 3 ? std::isnan(row.numbers[j]) : row.categories[0].empty();
      sum[j] += x[j];
      squares[j] += double(x[j]) * double(x[j]);
      known[j] += missing ? 0 : 1;
      EXPECT_TRUE(!missing || x[j] == 0.f);
    }
  }
  for (std::size_t j = 0; j < width; ++j) {
    EXPECT_NEAR(sum[j] / known[j], 0, 1e-5) << j;
    EXPECT_NEAR(squares[j] / known[j], 1, 1e-5) << j;
  }
}

// All that a client learns of another's rows is their sums: others with the same sums change
// nothing.
TEST(TableScale, RowsOfOthersActThroughTheirSumsAlone) {
  const Table mine = random_table(0, 20);
  const Table theirs = {
      {{1, 0, 5}, {"a"}}, {{2, 0, 5}, {"b"}}, {{3, 0, 5}, {"b"}}, {{6, 0, 5}, {"a"}}};
  // {1, 2, 3, 6} and {4, 5, 0, 3}: the same sum 12 and squares 50.
  const Table others = {
      {{4, 0, 5}, {"b"}}, {{5, 0, 5}, {"a"}}, {{0, 0, 5}, {"a"}}, {{3, 0, 5}, {"b"}}};
  EXPECT_EQ(report(theirs), report(others));
  EXPECT_EQ(pooled_scale(std::vector{report(mine), report(theirs)}),
            pooled_scale(std::vector{report(mine), report(others)}));
}

TEST(TableScale, TheOrderOfClientsDoesNotMatter) {
  const ClientReport a = report(random_table(0, 50)), b = report(random_table(1, 60));
  EXPECT_EQ(pooled_scale(std::vector{a, b}), pooled_scale(std::vector{b, a}));
}

TEST(TableScale, CategoriesAreTheUnionAndTheMostFrequentIsTheBaseline) {
  const Table a = {{{}, {"x"}}, {{}, {"x"}}, {{}, {""}}}, b = {{{}, {"w"}}, {{}, {"y"}}};
  const TableScale scale = pooled_scale(std::vector{report(a), report(b)});
  ASSERT_EQ(scale.categories.size(), 1u);
  EXPECT_EQ(scale.categories[0].baseline, "x");
  ASSERT_EQ(scale.categories[0].others.size(), 2u);
  EXPECT_EQ(scale.categories[0].others[0].first, "w");
  EXPECT_EQ(scale.categories[0].others[1].first, "y");
  // w: one of four known rows.
  EXPECT_DOUBLE_EQ(scale.categories[0].others[0].second.mean, 0.25);
  EXPECT_NEAR(scale.categories[0].others[0].second.deviation, std::sqrt(0.25 * 0.75), 1e-12);

  const auto encoded = [&](const std::string& value) {
    std::vector<float> x;
    encode({{}, {value}}, scale, x);
    return x;
  };
  EXPECT_GT(encoded("w")[0], 0);
  EXPECT_LT(encoded("w")[1], 0);
  EXPECT_LT(encoded("x")[0], 0);
  EXPECT_EQ(encoded(""), (std::vector<float>{0, 0}));
  EXPECT_EQ(encoded("never reported"), (std::vector<float>{0, 0}));
}

// Seconds since 1970 within half an hour, in two hospitals.
TEST(TableScale, AColumnThatVariesLittleAroundALargeMeanKeepsItsDigits) {
  Table a, b;
  double squares = 0;
  for (int i = 0; i < 100; ++i) {
    (i % 3 ? a : b).push_back({{1.7e9 + 18.0 * i}, {}});
    squares += std::pow(18.0 * (i - 49.5), 2);
  }
  const TableScale scale = pooled_scale(std::vector{report(a), report(b)});
  EXPECT_NEAR(scale.numbers[0].mean, 1.7e9 + 18.0 * 49.5, 1e-6);
  EXPECT_NEAR(scale.numbers[0].deviation, std::sqrt(squares / 100), 1e-6);
}

TEST(TableScale, NumbersWithoutAVarianceAreRefused) {
  EXPECT_THROW(pooled_scale(std::vector{report(Table{{{1e200}, {}}, {{-1e200}, {}}})}), InputError);
}

TEST(TableScale, AColumnThatDoesNotVaryOrIsNeverThereBecomesZero) {
  const Table rows = {{{2015.1, kMissing}, {}}, {{2015.1, kMissing}, {}}, {{2015.1, kMissing}, {}}};
  const TableScale scale = pooled_scale(std::vector{report(rows)});
  EXPECT_EQ(scale.numbers[0].deviation, 1.0);
  EXPECT_FALSE(scale.numbers[0].varies);
  EXPECT_FALSE(scale.numbers[1].varies);
  std::vector<float> x;
  encode(rows[0], scale, x);
  encode({{2016, 7}, {}}, scale, x);  // of which training says nothing
  EXPECT_EQ(x, (std::vector<float>{0, 0, 0, 0}));
}

TEST(TableScale, AColumnThatDiffersBetweenClientsAloneVaries) {
  const Table a = {{{1}, {}}, {{1}, {}}}, b = {{{2}, {}}};
  EXPECT_FALSE(pooled_scale(std::vector{report(a)}).numbers[0].varies);
  EXPECT_TRUE(pooled_scale(std::vector{report(a), report(b)}).numbers[0].varies);
}

TEST(TableScale, AClientWithoutRowsReportsNothing) {
  const ClientReport a = report(random_table(0, 10));
  EXPECT_EQ(pooled_scale(std::vector{report({}), a, report({})}), pooled_scale(std::vector{a}));
  EXPECT_EQ(pooled_scale({}), TableScale{});
}

TEST(TableScale, TablesOfDifferentWidthsAreRefused) {
  EXPECT_THROW(report(Table{{{1}, {}}, {{1, 2}, {}}}), InputError);
  EXPECT_THROW(pooled_scale(std::vector{report(Table{{{1}, {}}}), report(Table{{{1, 2}, {}}})}),
               InputError);
  std::vector<float> x;
  EXPECT_THROW(encode({{1, 2}, {}}, pooled_scale(std::vector{report(Table{{{1}, {}}})}), x),
               InputError);
}

}  // namespace
}  // namespace fedep
