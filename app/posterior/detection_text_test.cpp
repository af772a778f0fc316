#include "app/posterior/detection_text.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fedep {
namespace {

using testing::HasSubstr;
using testing::Not;

PosteriorEvaluation found(bool draws, double by_entropy = 0.75) {
  DetectionReport report{.unlike = "noise", .examples = 90, .unlike_examples = 10};
  report.point = {.max_probability = {0.7, 0.02}, .entropy = {by_entropy, 0.03}};
  report.point.energy = {0.25, 0.01};
  if (draws) {
    report.marginal = report.point;
    report.marginal->energy.reset();
    report.marginal->mutual_information = {0.9876, 0.004};
  }
  PosteriorEvaluation out;
  out.detection = {report};
  return out;
}

TEST(DetectionText, HasAScoreALine) {
  const std::string text = detection_text(found(true), nullptr);
  EXPECT_THAT(text, HasSubstr("telling 10 unlike examples (noise) from 90 held-out ones"));
  EXPECT_THAT(text, HasSubstr("0.7500 +- 0.0300"));
  EXPECT_THAT(text, HasSubstr("0.2500 +- 0.0100"));
  EXPECT_THAT(text, HasSubstr("0.9876 +- 0.0040"));
  EXPECT_THAT(text, Not(HasSubstr("calibrated")));
  EXPECT_THAT(detection_text(found(false), nullptr), Not(HasSubstr("mutual")));
}

TEST(DetectionText, HasProbabilitiesAfterATemperatureToo) {
  const PosteriorEvaluation after = found(true, 0.8125);
  const std::string text = detection_text(found(true), &after);
  EXPECT_THAT(text, HasSubstr("entropy, calibrated"));
  EXPECT_THAT(text, HasSubstr("0.8125"));
  EXPECT_THAT(text, Not(HasSubstr("energy, calibrated")));
  const Json json = detection_json(found(true), &after);
  EXPECT_EQ(json[0]["point_calibrated"]["entropy"]["auroc"], 0.8125);
  EXPECT_EQ(json[0]["marginal_calibrated"].size(), 2u);
}

TEST(DetectionText, AgreesWithItsJson) {
  const Json json = detection_json(found(true), nullptr);
  ASSERT_EQ(json.size(), 1u);
  EXPECT_EQ(json[0]["unlike"], "noise");
  EXPECT_EQ(json[0]["unlike_examples"], 10);
  EXPECT_EQ(json[0]["point"]["energy"]["auroc"], 0.25);
  EXPECT_EQ(json[0]["marginal"]["mutual_information"]["se"], 0.004);
  EXPECT_FALSE(json[0].contains("point_calibrated"));
  EXPECT_FALSE(detection_json(found(false), nullptr)[0].contains("marginal"));
}

TEST(DetectionText, OfScoresThatDoNotExistIsADash) {
  PosteriorEvaluation nothing = found(false, NAN);
  EXPECT_THAT(detection_text(nothing, nullptr), Not(HasSubstr("nan")));
  EXPECT_TRUE(detection_json(nothing, nullptr)[0]["point"]["entropy"]["auroc"].is_null());
}

TEST(DetectionText, IsNotThereWithoutUnlikeExamples) {
  EXPECT_EQ(detection_text({}, nullptr), "");
  EXPECT_TRUE(detection_json({}, nullptr).is_null());
}

}  // namespace
}  // namespace fedep
