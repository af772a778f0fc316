#include "fedep/metric/selective.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "fedep/message/error.h"

namespace fedep {
namespace {

SelectiveRisk made_of(const std::vector<double>& sureness, const std::vector<int>& wrong) {
  SelectiveRisk out;
  for (std::size_t i = 0; i < sureness.size(); ++i) out.add(sureness[i], wrong[i] != 0);
  return out;
}

TEST(SelectiveRisk, IsTheFractionOfErrorsAmongTheSurest) {
  const SelectiveRisk risk = made_of({0.9, 0.2, 0.7, 0.5, 0.8}, {0, 1, 1, 0, 0});
  EXPECT_EQ(risk.risk(0.2), 0.0);
  EXPECT_EQ(risk.risk(0.4), 0.0);
  EXPECT_DOUBLE_EQ(risk.risk(0.6), 1.0 / 3);
  EXPECT_DOUBLE_EQ(risk.risk(0.8), 0.25);
  EXPECT_DOUBLE_EQ(risk.risk(1), 0.4);
  EXPECT_DOUBLE_EQ(risk.area(), (0 + 0 + 1.0 / 3 + 0.25 + 0.4) / 5);
}

TEST(SelectiveRisk, AtFullCoverageIsTheErrorWhateverTheOrder) {
  EXPECT_DOUBLE_EQ(made_of({1, 2, 3, 4}, {1, 0, 0, 1}).risk(1), 0.5);
  EXPECT_DOUBLE_EQ(made_of({4, 3, 2, 1}, {1, 0, 0, 1}).risk(1), 0.5);
}

// The average over all orders of the tied examples.
TEST(SelectiveRisk, TakesTiesInARandomOrder) {
  const std::vector<double> sureness{0.9, 0.5, 0.5, 0.5, 0.1};
  const std::vector<int> wrong{0, 1, 0, 0, 1};
  std::vector<std::size_t> order{1, 2, 3};
  double area = 0, orders = 0;
  do {
    std::vector<double> broken = sureness;
    for (std::size_t k = 0; k < 3; ++k) broken[order[k]] += 0.01 * double(k);
    area += made_of(broken, wrong).area();
    ++orders;
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_NEAR(made_of(sureness, wrong).area(), area / orders, 1e-15);
}

TEST(SelectiveRisk, ThatSaysNothingHasTheSameRiskAtEveryCoverage) {
  const SelectiveRisk risk = made_of({1, 1, 1, 1}, {1, 0, 0, 0});
  for (const double coverage : {0.25, 0.5, 0.75, 1.0}) EXPECT_EQ(risk.risk(coverage), 0.25);
  EXPECT_EQ(risk.area(), 0.25);
}

TEST(SelectiveRisk, OfAPerfectOrderIsTheLeast) {
  std::mt19937_64 random(1);
  std::vector<double> perfect, shuffled;
  std::vector<int> wrong;
  for (int i = 0; i < 200; ++i) {
    wrong.push_back(random() % 4 == 0);
    shuffled.push_back(double(random() % 1000));
    perfect.push_back(shuffled.back() - (wrong.back() ? 1e6 : 0.0));
  }
  const SelectiveRisk best = made_of(perfect, wrong), other = made_of(shuffled, wrong);
  EXPECT_NEAR(best.area(), best.least_area(), 1e-15);
  EXPECT_NEAR(other.least_area(), best.least_area(), 1e-15);
  EXPECT_GT(other.area(), best.area() + 0.05);
}

TEST(SelectiveRisk, DoesNotChangeUnderAMonotoneMap) {
  const std::vector<int> wrong{0, 1, 0, 1, 0, 0};
  const std::vector<double> sureness{0.9, 0.2, 0.7, 0.7, 0.8, 0.1};
  std::vector<double> mapped;
  for (const double s : sureness) mapped.push_back(std::exp(3 * s) - 7);
  EXPECT_EQ(made_of(sureness, wrong).area(), made_of(mapped, wrong).area());
}

TEST(SelectiveRisk, DoesNotExistWithoutExamplesOrWithANaN) {
  EXPECT_TRUE(std::isnan(SelectiveRisk().risk(0.5)));
  EXPECT_TRUE(std::isnan(SelectiveRisk().area()));
  const SelectiveRisk risk = made_of({0.5, std::numeric_limits<double>::quiet_NaN()}, {0, 1});
  EXPECT_TRUE(std::isnan(risk.risk(0.5)));
  EXPECT_TRUE(std::isnan(risk.least_area()));
}

TEST(SelectiveRisk, TakesAtLeastOneExampleAndRefusesCoverageThatCannotBe) {
  const SelectiveRisk risk = made_of({0.5, 0.4}, {1, 0});
  EXPECT_EQ(risk.risk(0.01), 1.0);
  for (const double coverage : {0.0, -0.5, 1.01}) EXPECT_THROW(risk.risk(coverage), InputError);
}

}  // namespace
}  // namespace fedep
