#include "app/posterior/outlier_scores.h"

#include <algorithm>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/posterior/evaluate_command.h"
#include "app/posterior/export_command.h"
#include "app/posterior/predict_file.h"
#include "app/posterior/prediction_formats.h"
#include "app/test_images.h"
#include "app/test_run.h"
#include "fedep/message/error.h"
#include "fedep/store/json.h"
#include "fedep/store/safetensors/safetensors.h"

namespace fedep {
namespace {

using testing::HasSubstr;

double flagged(const PredictedRows& rows) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) count += rows.outlier(i);
  return double(count) / double(rows.size());
}

class ImagesOfAPosterior : public testing::Test {
 protected:
  PredictedRows predicted(const TestImages& images, std::optional<int> samples = 30) const {
    return predict_file(run().path(), run().write("new", images), run().folder().path(), samples);
  }
  static const ImageRun& run() {
    static const ImageRun one(kImageFedEp);
    return one;
  }
};

TEST_F(ImagesOfAPosterior, AreUnlikeByMutualInformation) {
  const PredictedRows rows = predicted(draw_images(5, 50, 0));
  EXPECT_EQ(rows.outliers.by, "their mutual information or energy");
  EXPECT_EQ(rows.outliers.scores, rows.mutual_information);
  EXPECT_EQ(rows.outliers.energies.size(), 50u);
}

// Images that nobody has seen. Each score flags 2.5 %, and both together no more than 5 %, give or take what 2,000 of them
// and a threshold from 1,000 can tell (0.006 at 2.5 %, 0.0085 at 5 %, three of which are allowed).
TEST_F(ImagesOfAPosterior, OfTheTrainingKindAreFlaggedAtMostOnceInTwenty) {
  const PredictedRows rows = predicted(draw_images(6, 2000, 0));
  EXPECT_GT(flagged(rows), 0.025 - 0.018);
  EXPECT_LT(flagged(rows), 0.05 + 0.026);
  std::size_t by_information = 0;
  for (const double score : rows.outliers.scores) by_information += score > rows.outliers.threshold;
  EXPECT_NEAR(double(by_information) / 2000, 0.025, 0.018);
}

TEST_F(ImagesOfAPosterior, OfOtherKindsAreFoundByMutualInformation) {
  const PredictedRows rows = predicted(draw_images(7, 500, kUnlikePicture));
  std::size_t found = 0;
  for (const double score : rows.outliers.scores) found += score > rows.outliers.threshold;
  EXPECT_GT(double(found) / 500, 0.8);
}

// Draws agree about an image of nothing, of which an estimate says nothing either.
TEST_F(ImagesOfAPosterior, OfNothingAreFoundByEnergy) {
  TestImages black = draw_images(7, 20, 0);
  std::fill(black.pixels.begin() + 16, black.pixels.end(), std::uint8_t(0));
  EXPECT_EQ(flagged(predicted(black)), 1);
}

// At the mean alone there is nothing that draws disagree in.
TEST_F(ImagesOfAPosterior, AreUnlikeByEnergyWithoutDraws) {
  for (const int samples : {0, 1}) {
    const PredictedRows rows = predicted(draw_images(6, 2000, 0), samples);
    EXPECT_EQ(rows.outliers.by, "their energy");
    EXPECT_NEAR(flagged(rows), 0.05, 0.026);
  }
}

TEST(Images, OfAPointEstimateAreUnlikeByEnergy) {
  const ImageRun run(kImageFedAvg);
  const PredictedRows rows =
      predict_file(run.path(), run.write("new", draw_images(6, 2000, 0)), run.folder().path());
  EXPECT_EQ(rows.outliers.by, "their energy");
  EXPECT_NEAR(flagged(rows), 0.05, 0.026);
}

TEST(Images, OfUnseenClassesAreToldApartAndNotPredicted) {
  const ImageRun run(kImageFedEp, {"data.unseen_classes=1"});
  const EvaluateReport report = evaluate_run(run.path(), run.folder().path(), {.samples = 30});
  ASSERT_EQ(report.scores.detection.size(), 1u);
  EXPECT_EQ(report.scores.examples, 750u);
  EXPECT_EQ(report.scores.detection[0].unlike_examples, 250u);
  EXPECT_GT(report.scores.detection[0].marginal->mutual_information->auroc, 0.9);
  const PredictedRows rows =
      predict_file(run.path(), run.write("new", draw_images(6, 50, 0)), run.folder().path(), 30);
  EXPECT_EQ(rows.outputs, (std::vector<std::string>{"0", "2", "3"}));
  for (std::size_t i = 1; i < rows.size(); i += kImageClasses) {  // the class that was left out
    EXPECT_GT(rows.outliers.scores[i], 0);
  }
  std::istringstream lines(predictions_jsonl(rows));
  std::string line;
  std::size_t right = 0;
  for (std::size_t i = 0; std::getline(lines, line); ++i) {
    right += Json::parse(line)["prediction"] == std::to_string(i % kImageClasses);
  }
  EXPECT_GT(right, 30u);  // of the 37 that have an output
  const auto exported = export_safetensors(run.path(), run.folder().path() / "out");
  EXPECT_EQ(read_safetensors(exported[0]).metadata.at("unseen_classes"), "1");
}

TEST(Images, NeedTheTrainingDataAndSayWithWhichOption) {
  const ImageRun run(kImageFedAvg);
  const auto images = run.write("new", draw_images(6, 5, 0));
  EXPECT_THAT([&] { predict_file(run.path(), images, run.folder().path() / "nowhere"); },
              testing::ThrowsMessage<InputError>(testing::AllOf(
                  HasSubstr("nowhere/images is missing"), HasSubstr("--training-data DIR"))));
}

TEST(Images, OfAnotherFileAreToldApart) {
  const ImageRun run(kImageFedEp);
  const auto unlike = run.write("unlike", draw_images(7, 300, kUnlikePicture));
  const EvaluateReport report =
      evaluate_run(run.path(), run.folder().path(), {.samples = 30, .unlike = unlike});
  ASSERT_EQ(report.scores.detection.size(), 1u);
  EXPECT_EQ(report.scores.detection[0].unlike, "unlike");
  EXPECT_EQ(report.scores.detection[0].unlike_examples, 300u);
  EXPECT_GT(report.scores.detection[0].marginal->mutual_information->auroc, 0.9);
  EXPECT_THAT(evaluation_text(report, false), HasSubstr("telling 300 unlike examples (unlike)"));
  EXPECT_EQ(evaluation_json(report)["detection"][0]["unlike_examples"], 300);
}

TEST(Rows, AreUnlikeByTheirColumns) {
  const TestRun run;
  const auto rows = predict_file(
      run.path(), run.write("new.csv", "age,sodium,unit\n60,140,ICU\n600,140,ICU\n"), "");
  EXPECT_EQ(rows.outliers.by, "their columns");
  EXPECT_FALSE(rows.outlier(0));
  EXPECT_TRUE(rows.outlier(1));
}

// Rows of another table: their outcomes are not looked at.
TEST(Rows, OfAnotherTableAreToldApart) {
  const TestRun run(kFullFedEp);
  const auto unlike = run.write("other.csv", "age,sodium,unit\n400,140,ICU\n-300,100,ICU\n");
  const EvaluateReport report =
      evaluate_run(run.path(), run.folder().path(), {.samples = 50, .unlike = unlike});
  ASSERT_EQ(report.scores.detection.size(), 1u);
  EXPECT_EQ(report.scores.detection[0].unlike_examples, 2u);
  EXPECT_FALSE(report.scores.detection[0].point.energy);
}

}  // namespace
}  // namespace fedep
