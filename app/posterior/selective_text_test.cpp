#include "app/posterior/selective_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fedep {
namespace {

using testing::HasSubstr;
using testing::Not;

PosteriorEvaluation with_curves(bool draws) {
  SelectiveReport report;
  report.entropy = 0.7;
  for (std::size_t i = 0; i < report.point.risk.size(); ++i) {
    report.point.risk[i] = kSelectiveCoverages[i] / 4;
  }
  report.point.area = 0.125;
  if (draws) {
    report.marginal = report.mutual_information = report.point;
    report.entropy_marginal = 0.8;
    report.information = 0.15;
  }
  PosteriorEvaluation out;
  out.selective = report;
  return out;
}

TEST(SelectiveText, SaysErrorsAmongTheSurest) {
  const std::string text = selective_text(with_curves(false), nullptr);
  EXPECT_THAT(text, HasSubstr("confidence, at the mean"));
  EXPECT_THAT(text, HasSubstr("12.50%"));  // at 50 %
  EXPECT_THAT(text, HasSubstr("25.00%"));  // of all
  EXPECT_THAT(text, Not(HasSubstr("mutual information")));
}

TEST(SelectiveText, HasAllThreeOrdersWhereThereAreDraws) {
  const std::string text = selective_text(with_curves(true), nullptr);
  EXPECT_THAT(text, HasSubstr("confidence, over draws"));
  EXPECT_THAT(text, HasSubstr("mutual information, over draws"));
  EXPECT_THAT(text, HasSubstr("0.1500 of it"));
  EXPECT_THAT(text, HasSubstr("which more data would take away"));
  // Rounds scatter however many data there are.
  const std::string average = selective_text(with_curves(true), nullptr, true);
  EXPECT_THAT(average, HasSubstr("how far rounds scattered"));
  EXPECT_THAT(average, Not(HasSubstr("more data")));
}

TEST(SelectiveText, AgreesWithItsJson) {
  const Json json = selective_json(with_curves(true), nullptr);
  EXPECT_EQ(json["coverage"].size(), json["point"]["risk"].size());
  EXPECT_EQ(json["point"]["risk"][7], 0.2);
  EXPECT_EQ(json["mutual_information"]["mean"], 0.15);
  EXPECT_EQ(json["marginal"]["entropy"], 0.8);
  EXPECT_FALSE(selective_json(with_curves(false), nullptr).contains("marginal"));
}

TEST(SelectiveText, HasOrdersAfterATemperatureToo) {
  PosteriorEvaluation after = with_curves(true);
  after.selective->point.area = after.selective->marginal->area = 0.0625;
  EXPECT_THAT(selective_text(with_curves(true), &after),
              HasSubstr("confidence, over draws, calibrated"));
  const Json json = selective_json(with_curves(true), &after);
  EXPECT_EQ(json["point_calibrated"]["area"], 0.0625);
  EXPECT_EQ(json["marginal_calibrated"]["area"], 0.0625);
  EXPECT_EQ(json["point"]["area"], 0.125);
  PosteriorEvaluation no_draws = with_curves(false);
  EXPECT_FALSE(selective_json(with_curves(false), &no_draws).contains("marginal_calibrated"));
}

TEST(SelectiveText, IsNotThereWithoutClasses) {
  EXPECT_EQ(selective_text({}, nullptr), "");
  EXPECT_TRUE(selective_json({}, nullptr).is_null());
}

}  // namespace
}  // namespace fedep
