#include "fedep/data/table/audit/column_report.h"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace fedep {
namespace {

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

TEST(ColumnReport, OfPartsAddUpToThatOfAllRows) {
  const std::vector<double> values = {3, kMissing, -999, 4.5, 8, kMissing, 1, -999, 2};
  const std::vector<double> events = {1, 1, 0, 0, 1, 0, 1, 1, 0};
  const ColumnReport all = report_of(values, events);
  EXPECT_EQ(all.missing(), 2);
  EXPECT_EQ(all.events, 4);
  EXPECT_EQ(all.codes, (std::map<double, double>{{-999, 2}}));
  EXPECT_EQ(all.others, (ValueRange{1, 8}));
  for (std::size_t cut = 0; cut <= values.size(); ++cut) {
    ColumnReport sum = report_of(std::span(values).first(cut), std::span(events).first(cut));
    add(sum, report_of(std::span(values).subspan(cut), std::span(events).subspan(cut)));
    EXPECT_NEAR(sum.mean(), all.mean(), 1e-9);
    EXPECT_NEAR(sum.deviation(), all.deviation(), 1e-9);
    sum.values = all.values;
    EXPECT_EQ(sum, all) << cut;
  }
}

TEST(ColumnReport, OfCategoriesCountsLevelsAndTheirEvents) {
  const std::string icu = "icu", ward = "ward", none;
  const std::vector<const std::string*> values = {&icu, &ward, &none, &ward};
  const std::vector<double> events = {1, 0, 1, 1};
  const ColumnReport report = report_of(values, events);
  EXPECT_EQ(report.missing(), 1);
  EXPECT_EQ(report.events, 2);
  EXPECT_EQ(report.levels, (std::map<std::string, LevelReport>{{"icu", {1, 1}}, {"ward", {2, 1}}}));
  EXPECT_TRUE(report.range.empty());
}

TEST(ColumnReport, OfNothingHasNoMean) {
  const ColumnReport none = report_of(std::span<const double>(), {});
  EXPECT_TRUE(std::isnan(none.mean()) && std::isnan(none.deviation()) && none.range.empty());
  ColumnReport sum = none;
  add(sum, none);
  EXPECT_EQ(sum, none);
}

TEST(ColumnReport, TellsNamesOfRowsFromMeasurements) {
  std::vector<double> counter, drawn, ages, binary;
  const std::vector<double> events(100);
  for (int i = 0; i < 100; ++i) {
    counter.push_back(500 + (i * 37) % 100);            // in any order
    drawn.push_back(100000 + (i * 7919) % 10007 * 80);  // far apart, evenly
    ages.push_back(40 + (i * 37) % 45);
    binary.push_back(i % 2);
  }
  EXPECT_EQ(report_of(counter, events).names, 100);
  EXPECT_EQ(report_of(drawn, events).names, 100);
  EXPECT_EQ(report_of(ages, events).names, 0);
  EXPECT_EQ(report_of(binary, events).names, 0);
  counter[0] += 0.5;
  EXPECT_EQ(report_of(counter, events).names, 0) << "no whole numbers";
}

}  // namespace
}  // namespace fedep
