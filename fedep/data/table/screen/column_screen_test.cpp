#include "fedep/data/table/screen/column_screen.h"

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fedep/random/stream.h"

namespace fedep {
namespace {

using testing::HasSubstr;
using Columns = std::vector<std::vector<double>>;  // a client each

ColumnSummary summary(std::vector<double> values) {
  std::erase_if(values, [](double value) { return std::isnan(value); });
  return summary_of(values);
}

ColumnScreen screened(const Columns& clients) {
  std::vector<ColumnSummary> sent;
  for (const auto& values : clients) sent.push_back(summary(values));
  return screen_column(sent);
}

// Whether all values of everybody are let through.
bool is_clean(const Columns& clients) {
  const ColumnScreen screen = screened(clients);
  for (const auto& values : clients) {
    for (const double value : values) {
      if (value < screen.low || value > screen.high) return false;
    }
  }
  return screen.strangers.empty();
}

using Draw = std::function<double(Stream&)>;

// Clients' values with medians that differ by `mix` deviations of 1.
Columns drawn(std::uint32_t which, std::size_t clients, std::size_t rows, const Draw& draw,
              double mix = 0) {
  Stream stream({.seed = 3, .purpose = Purpose::test, .round = which});
  Columns out(clients);
  for (auto& values : out) {
    const double shift = mix * stream.normal();
    for (std::size_t i = 0; i < rows; ++i) values.push_back(draw(stream) + shift);
  }
  return out;
}

double age(Stream& s) { return 60 + 16 * s.normal(); }
Draw lognormal(double sigma) {
  return [sigma](Stream& s) { return std::exp(sigma * s.normal()); };
}
Draw binary(double part) {
  return [part](Stream& s) { return s.uniform() < part ? 1.0 : 0.0; };
}

TEST(ColumnSummary, OfAFewRowsHasNoQuantiles) {
  EXPECT_FALSE(summary(std::vector<double>(kRowsForQuantiles - 1, 3.0)).has_quantiles);
  std::vector<double> values;
  for (int i = 0; i <= 100; ++i) values.push_back(100 - i);
  const ColumnSummary all = summary(values);
  EXPECT_THAT(all.quantiles, testing::ElementsAre(10, 25, 50, 75, 90));
  EXPECT_EQ(all.least, 0);
  EXPECT_EQ(all.most, 100);
}

TEST(ColumnSummary, KnowsTwoValuesFromMeanDeviationAndExtremes) {
  EXPECT_TRUE(summary({0, 1, 1, 0, 0, 0}).has_two_values());
  EXPECT_TRUE(summary({-3, 8, 8}).has_two_values());
  EXPECT_FALSE(summary({0, 1, 2, 2}).has_two_values());
  EXPECT_FALSE(summary({5, 5}).has_two_values());
}

TEST(ColumnSummary, StaysFiniteForTheLargestDoubles) {
  const ColumnSummary huge = summary({1.7e308, -1.7e308, 1});
  EXPECT_TRUE(std::isfinite(huge.deviation));
  for (const double q : huge.spread_out()) EXPECT_TRUE(std::isfinite(q));
}

// What hospitals' honest columns look like: each of these, in each design, 20 times.
TEST(ColumnScreen, LetsHonestColumnsThrough) {
  const std::vector<std::pair<std::string, Draw>> columns = {
      {"age", age},
      {"sodium", [](Stream& s) { return 138 + 5 * s.normal(); }},
      {"lognormal 0.3", lognormal(0.3)},
      {"lognormal 0.7", lognormal(0.7)},
      {"lognormal 1.5", lognormal(1.5)},
      {"lognormal 2", lognormal(2)},
      {"exponential", [](Stream& s) { return -std::log(1 - s.uniform()); }},
      {"binary 0.5", binary(0.5)},
      {"binary 0.05", binary(0.05)},
      {"binary 0.003", binary(0.003)},
      {"mostly zero", [](Stream& s) { return s.uniform() < 0.7 ? 0.0 : std::exp(s.normal()); }},
      {"detection limit", [](Stream& s) { return std::max(0.0, std::exp(s.normal()) - 0.5); }},
      {"a score", [](Stream& s) { return std::floor(3 + 13 * std::sqrt(s.uniform())); }},
      {"left skewed", [](Stream& s) { return 100 - std::exp(1.2 + 0.8 * s.normal()); }},
      {"two modes", [](Stream& s) { return (s.uniform() < 0.5 ? 0 : 10) + s.normal(); }}};
  std::uint32_t which = 0;
  for (const auto& [name, draw] : columns) {
    for (const auto& [clients, rows] :
         std::vector<std::pair<std::size_t, std::size_t>>{{10, 200}, {10, 5}, {40, 30}, {3, 50}}) {
      for (int again = 0; again < 20; ++again) {
        EXPECT_TRUE(is_clean(drawn(++which, clients, rows, draw))) << name << " " << clients;
      }
    }
  }
}

TEST(ColumnScreen, LetsClientsDifferInTheirCases) {
  for (std::uint32_t which = 0; which < 40; ++which) {
    EXPECT_TRUE(is_clean(drawn(which, 10, 200, age, 8)));   // half a deviation
    EXPECT_TRUE(is_clean(drawn(which, 10, 200, age, 16)));  // a whole one
    EXPECT_TRUE(is_clean(drawn(
        which, 10, 200, [](Stream&) { return 0.0; }, 1)));  // nothing else
    // A hospital for children among nine others.
    Columns children = drawn(which, 10, 200, age, 3);
    for (double& value : children[4]) value = 8 + (value - 60) / 3;
    EXPECT_TRUE(is_clean(children));
    // A ward that sees the sickest: three times the creatinine.
    Columns creatinine = drawn(which, 10, 200, lognormal(0.6));
    for (double& value : creatinine[0]) value *= 3;
    EXPECT_TRUE(is_clean(creatinine));
    // A drug that one hospital alone gives.
    Columns drug(10, std::vector<double>(100, 0.0));
    for (std::size_t i = 0; i < 30; ++i) drug[2][i] = double(i);
    EXPECT_TRUE(is_clean(drug));
  }
}

TEST(ColumnScreen, FindsOneRowInThousands) {
  for (const double bad : {1e6, 9999.0, -9999.0, 1e200, -1e308, 999.0, -999.0, 600.0}) {
    for (const std::size_t rows : {5u, 20u, 200u}) {
      if (rows == 5 && std::fabs(bad) < 1000) continue;  // of 50 rows in all, too few to tell
      Columns clients = drawn(std::uint32_t(rows), 10, rows, age, 4);
      clients[6][2] = bad;
      const ColumnScreen screen = screened(clients);
      EXPECT_TRUE(bad < screen.low || bad > screen.high) << bad << " of " << rows;
      EXPECT_TRUE(screen.strangers.empty());
      clients[6][2] = 60;
      for (const auto& values : clients) {
        for (const double value : values) {
          EXPECT_TRUE(value >= screen.low && value <= screen.high) << value;
        }
      }
    }
  }
}

TEST(ColumnScreen, FindsACodeAmongZerosAndOnes) {
  for (const double code : {9.0, -9.0, 99.0, 1e6}) {
    Columns clients = drawn(1, 10, 200, binary(0.3));
    clients[3][17] = code;
    const ColumnScreen screen = screened(clients);
    EXPECT_TRUE(code < screen.low || code > screen.high) << code;
  }
}

TEST(ColumnScreen, FindsACodeThatAThirdOfTheClientsUse) {
  Columns clients = drawn(2, 10, 200, age, 4);
  for (const std::size_t client : {1u, 5u, 8u}) {
    for (std::size_t i = 0; i < 20; ++i) clients[client][7 * i] = 9999;
  }
  EXPECT_LT(screened(clients).high, 9999);
}

TEST(ColumnScreen, FindsTheClientWithOtherUnits) {
  struct Units {
    std::string name;
    Draw draw;
    double factor, offset;
  };
  const Draw weight = [](Stream& s) {
    return 84 + 22 * s.normal() * (s.uniform() < 0.5 ? 1 : 0.7);
  };
  const std::vector<Units> units = {
      {"cm for m", [](Stream& s) { return 1.7 + 0.1 * s.normal(); }, 100, 0},
      {"m for cm", [](Stream& s) { return 170 + 10 * s.normal(); }, 0.01, 0},
      {"lb for kg", weight, 2.2046, 0},
      {"kg for lb", weight, 1 / 2.2046, 0},
      {"F for C", [](Stream& s) { return 37 + 0.7 * s.normal(); }, 1.8, 32},
      {"C for F", [](Stream& s) { return 98.6 + 1.3 * s.normal(); }, 1 / 1.8, -32 / 1.8},
      {"glucose", [](Stream& s) { return 140 * std::exp(0.4 * s.normal()); }, 1 / 18.016, 0},
      {"cholesterol", [](Stream& s) { return 240 * std::exp(0.2 * s.normal()); }, 1 / 38.67, 0},
      {"creatinine", [](Stream& s) { return 1.1 * std::exp(0.6 * s.normal()); }, 88.42, 0}};
  for (const Units& unit : units) {
    for (std::uint32_t which = 0; which < 20; ++which) {
      Columns clients = drawn(which, 10, 200, unit.draw);
      for (double& value : clients[7]) value = value * unit.factor + unit.offset;
      const ColumnScreen screen = screened(clients);
      ASSERT_EQ(screen.strangers.size(), 1u) << unit.name;
      EXPECT_EQ(screen.strangers[0].client, 7u);
      EXPECT_THAT(screen.strangers[0].why, HasSubstr("median"));
    }
  }
}

TEST(ColumnScreen, FindsTheClientWithOtherCodesOrNoMeasurements) {
  Columns coded = drawn(5, 10, 100, binary(0.4));
  for (double& value : coded[2]) value += 1;
  ASSERT_EQ(screened(coded).strangers.size(), 1u);
  EXPECT_EQ(screened(coded).strangers[0].why, "it has 1 and 2, the others 0 and 1");

  Columns zeros = drawn(6, 10, 100, [](Stream& s) { return 240 + 50 * s.normal(); });
  for (double& value : zeros[9]) value = 0;
  ASSERT_EQ(screened(zeros).strangers.size(), 1u);
  EXPECT_THAT(screened(zeros).strangers[0].why, HasSubstr("all its values are 0"));
}

TEST(ColumnScreen, NamesNobodyWhereThereIsNoMajority) {
  Columns two = drawn(7, 2, 100, age);
  for (double& value : two[1]) value *= 100;
  EXPECT_TRUE(screened(two).strangers.empty());
  EXPECT_TRUE(screened({}).strangers.empty());
  EXPECT_TRUE(is_clean({{}, {}, {}}));
  EXPECT_TRUE(is_clean({{1}, {}, {2}}));
}

TEST(ColumnScreen, DoesNotDependOnTheColumnsUnit) {
  Columns clients = drawn(8, 10, 200, lognormal(0.8));
  const ColumnScreen plain = screened(clients);
  for (auto& values : clients) {
    for (double& value : values) value = value * 1024;
  }
  const ColumnScreen larger = screened(clients);
  EXPECT_NEAR(larger.high / plain.high, 1024, 1e-6);
  EXPECT_NEAR(larger.low / plain.low, 1024, 1e-6);
}

// A hundred thousand clients, each with a few rows.
TEST(ColumnScreen, OfThousandsOfClientsIsThatOfAFew) {
  Columns many = drawn(1, 12'001, 6, age);
  const ColumnScreen all = screened(many), few = screened(drawn(2, 3'000, 6, age));
  EXPECT_NEAR(all.low, few.low, 8);
  EXPECT_NEAR(all.high, few.high, 8);
  Stream stream({.seed = 4, .purpose = Purpose::test});
  for (int i = 0; i < 60'000; ++i) many[7'001].push_back(age(stream));  // nearly half of all rows
  EXPECT_TRUE(is_clean(many));
  for (const std::size_t client : {0u, 1u, 2u, 12'000u}) {  // heard or not
    Columns bad = many;
    bad[client][3] = 1e6;
    EXPECT_LT(screened(bad).high, 1e5) << client;
  }
}

TEST(ColumnScreen, TakesNoLongerThanItsClients) {
  std::vector<ColumnSummary> sent;
  Stream stream({.seed = 4, .purpose = Purpose::test});
  for (int c = 0; c < 100000; ++c) {
    sent.push_back(summary({age(stream), age(stream), age(stream)}));
  }
  sent[777] = summary({1e6, 60, 61});
  const ColumnScreen screen = screen_column(sent);
  EXPECT_LT(screen.high, 1e6);
  EXPECT_GT(screen.high, 130);
}

}  // namespace
}  // namespace fedep
