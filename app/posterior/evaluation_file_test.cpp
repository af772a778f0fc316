#include "app/posterior/evaluation_file.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace fedep {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(EvaluationFile, HasWeightsThatAddUpAndNullForEmptyBins) {
  const Reliability reliability{.point = {{0, 0.5, 1, 0.4, 1.0}, {0.5, 1, 3, 0.9, 2.0 / 3}},
                                .marginal = {{0, 0.5, 0, kNan, kNan}, {0.5, 1, 4, 0.8, 0.75}}};
  const Json json = evaluation_json(12, reliability);
  EXPECT_EQ(json["round"], 12);
  EXPECT_EQ(json["reliability"]["point"][0],
            Json::parse(R"({"confidence":0.4,"accuracy":1.0,"weight":0.25})"));
  EXPECT_EQ(json["reliability"]["point"][1]["weight"], 0.75);
  EXPECT_TRUE(json["reliability"]["marginal"][0]["confidence"].is_null());
  EXPECT_EQ(json["reliability"]["marginal"][0]["weight"], 0.0);
  EXPECT_EQ(json["reliability"]["marginal"][1]["weight"], 1.0);
}

TEST(EvaluationFile, HasNoMarginalWhereThereWereNoDraws) {
  const Json json = evaluation_json(1, {.point = {{0, 1, 0, kNan, kNan}}, .marginal = {}});
  EXPECT_FALSE(json["reliability"].contains("marginal"));
  EXPECT_EQ(json["reliability"]["point"][0]["weight"], 0.0);
}

}  // namespace
}  // namespace fedep
