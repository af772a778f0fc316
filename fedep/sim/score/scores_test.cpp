#include "fedep/sim/score/scores.h"

#include <cmath>

#include <gtest/gtest.h>

namespace fedep {
namespace {

std::vector<std::string> names_of(const Scores& scores) {
  std::vector<std::string> names;
  for (const auto& [name, value] : scores.metrics()) names.push_back(name);
  return names;
}

double value_of(const Scores& scores, std::string_view name) {
  for (const auto& [key, value] : scores.metrics()) {
    if (key == name) return value;
  }
  ADD_FAILURE() << "no metric " << name;
  return NAN;
}

TEST(PredictionsOf, AreProbabilitiesOrTheOutputsThemselves) {
  const std::vector<float> logits{0, std::log(3.0f), std::log(3.0f), 0};
  const std::vector<double> softmax = predictions_of(TargetKind::label, logits, 2);
  EXPECT_NEAR(softmax[0], 0.25, 1e-7);
  EXPECT_NEAR(softmax[2], 0.75, 1e-7);
  EXPECT_NEAR(softmax[2] + softmax[3], 1, 1e-12);
  for (const TargetKind target : {TargetKind::binary, TargetKind::tags}) {
    const std::vector<double> sigmoid = predictions_of(target, logits, 2);
    EXPECT_NEAR(sigmoid[0], 0.5, 1e-12);
    EXPECT_NEAR(sigmoid[1], 0.75, 1e-7);
  }
  EXPECT_EQ(predictions_of(TargetKind::real, std::vector<float>{-2, 5}, 1),
            (std::vector<double>{-2, 5}));
  EXPECT_EQ(predictions_of(TargetKind::count, std::vector<float>{-2, 5}, 1),
            (std::vector<double>{std::exp(-2.0), std::exp(5.0)}));
}

TEST(Scores, OfLabels) {
  const auto scores = make_scores(TargetKind::label, 2);
  Batch batch;
  batch.size = 2;
  batch.labels = {0, 1};
  scores->add(std::vector<double>{0.8, 0.2, 0.6, 0.4}, {}, batch);
  EXPECT_EQ(names_of(*scores), (std::vector<std::string>{"accuracy", "nll", "ece", "brier"}));
  EXPECT_EQ(value_of(*scores, "accuracy"), 0.5);
  EXPECT_NEAR(value_of(*scores, "nll"), -(std::log(0.8) + std::log(0.4)) / 2, 1e-12);
  EXPECT_NEAR(value_of(*scores, "brier"), (2 * 0.04 + 2 * 0.36) / 2, 1e-12);
  EXPECT_NEAR(value_of(*scores, "ece"), (0.2 + 0.6) / 2, 1e-12);  // a bin each: |1-0.8|, |0-0.6|
}

TEST(Scores, OfBinaryTargets) {
  const auto scores = make_scores(TargetKind::binary, 1);
  Batch batch;
  batch.size = 3;
  batch.labels = {1, 0, 1};
  scores->add(std::vector<double>{0.9, 0.7, 0.6}, {}, batch);
  EXPECT_EQ(names_of(*scores),
            (std::vector<std::string>{"accuracy", "nll", "auc", "ece", "brier"}));
  EXPECT_NEAR(value_of(*scores, "accuracy"), 2.0 / 3, 1e-12);
  EXPECT_NEAR(value_of(*scores, "auc"), 0.5, 1e-12);  // 0.9 beats 0.7, 0.6 does not
  EXPECT_NEAR(value_of(*scores, "brier"), (0.01 + 0.49 + 0.16) / 3, 1e-12);
}

TEST(Scores, OfTags) {
  const auto scores = make_scores(TargetKind::tags, 2);
  Batch batch;
  batch.size = 2;
  batch.tags.offsets = {0, 1, 3};
  batch.tags.columns = {0, 0, 1};
  scores->add(std::vector<double>{0.9, 0.8, 0.7, 0.1}, {}, batch);
  EXPECT_EQ(names_of(*scores), (std::vector<std::string>{"precision", "recall", "micro_f1",
                                                         "macro_f1", "recall_at_5", "nll"}));
  EXPECT_NEAR(value_of(*scores, "precision"), 2.0 / 3, 1e-12);  // cells predicted: 0.9, 0.8, 0.7
  EXPECT_NEAR(value_of(*scores, "recall"), 2.0 / 3, 1e-12);
  EXPECT_NEAR(value_of(*scores, "macro_f1"), (1.0 + 0) / 2, 1e-12);
}

TEST(Scores, OfRealTargetsHaveTheirNoiseAndTheSpreadOfDraws) {
  Batch batch;
  batch.size = 2;
  batch.reals = {1, 2};
  const auto point = make_scores(TargetKind::real, 1);
  point->add(std::vector<double>{0, 2}, {}, batch);
  EXPECT_NEAR(value_of(*point, "rmse"), std::sqrt(0.5), 1e-12);
  EXPECT_NEAR(value_of(*point, "nll"), 0.5 * std::log(2 * M_PI) + 0.25, 1e-12);
  const auto drawn = make_scores(TargetKind::real, 1);
  drawn->add(std::vector<double>{0, 2}, std::vector<double>{3, 0}, batch);
  EXPECT_NEAR(value_of(*drawn, "nll"),
              0.5 * std::log(2 * M_PI) + (0.5 * std::log(4.0) + 1.0 / 8) / 2, 1e-12);
  EXPECT_EQ(names_of(*point), (std::vector<std::string>{"rmse", "nll"}));
  EXPECT_EQ(names_of(*drawn), (std::vector<std::string>{"rmse", "nll", "spread", "error_ratio"}));
  EXPECT_NEAR(value_of(*drawn, "spread"), std::sqrt(1.5), 1e-12);
  EXPECT_NEAR(value_of(*drawn, "error_ratio"), std::sqrt(1.0 / 4 / 2), 1e-12);
  const auto noisy = make_scores({TargetKind::real, 3}, 1);
  noisy->add(std::vector<double>{0, 2}, std::vector<double>{7, 0}, batch);
  EXPECT_EQ(value_of(*noisy, "rmse"), value_of(*point, "rmse"));
  EXPECT_NEAR(value_of(*noisy, "nll"),
              0.5 * std::log(2 * M_PI) + (0.5 * std::log(16.0 * 9.0) + 1.0 / 32) / 2, 1e-12);
}

TEST(Scores, OfCountsHaveTheirDevianceAndTheSpreadOfDraws) {
  Batch batch;
  batch.size = 2;
  batch.reals = {0, 3};
  const auto point = make_scores(TargetKind::count, 1), drawn = make_scores(TargetKind::count, 1);
  point->add(std::vector<double>{1, 3}, {}, batch);
  drawn->add(std::vector<double>{1, 3}, std::vector<double>{2, 0}, batch);
  EXPECT_EQ(names_of(*point), (std::vector<std::string>{"deviance", "nll", "rmse"}));
  EXPECT_EQ(names_of(*drawn),
            (std::vector<std::string>{"deviance", "nll", "rmse", "spread", "error_ratio"}));
  EXPECT_NEAR(value_of(*point, "deviance"), (2 + 0) / 2.0, 1e-12);
  EXPECT_NEAR(value_of(*point, "nll"), (1 + 3 - 3 * std::log(3.0) + std::log(6.0)) / 2, 1e-12);
  // Of a negative binomial with mean 1 and variance 3, none: (1 + 2)^(-1/2).
  EXPECT_NEAR(value_of(*drawn, "nll"),
              (0.5 * std::log(3.0) + 3 - 3 * std::log(3.0) + std::log(6.0)) / 2, 1e-12);
  EXPECT_NEAR(value_of(*drawn, "spread"), 1, 1e-12);
  EXPECT_NEAR(value_of(*drawn, "error_ratio"), std::sqrt(1.0 / (3 + 3)), 1e-12);
}

TEST(Scores, TheVarianceOfDrawsIsUnbiasedAndHidesNoInfinity) {
  EXPECT_DOUBLE_EQ(variance_of_draws(2, (1 + 4 + 9) / 3.0, 3), 1);  // of 1, 2, 3
  EXPECT_EQ(variance_of_draws(0.1, 0.1 * 0.1, 4), 0);
  EXPECT_TRUE(std::isnan(variance_of_draws(INFINITY, INFINITY, 4)));
  EXPECT_TRUE(std::isnan(variance_of_draws(1, 1, 1)));
}

TEST(Scores, GatherBatches) {
  Batch all, first, second;
  all.size = 3;
  all.labels = {0, 1, 1};
  first.size = 2;
  first.labels = {0, 1};
  second.size = 1;
  second.labels = {1};
  const std::vector<double> p{0.8, 0.2, 0.6, 0.4, 0.3, 0.7};
  const auto once = make_scores(TargetKind::label, 2), twice = make_scores(TargetKind::label, 2);
  once->add(p, {}, all);
  twice->add(std::span(p).first(4), {}, first);
  twice->add(std::span(p).last(2), {}, second);
  EXPECT_EQ(once->metrics(), twice->metrics());
}

TEST(Scores, OfNothingDoNotExist) {
  for (const TargetKind target : {TargetKind::label, TargetKind::binary, TargetKind::tags,
                                  TargetKind::real, TargetKind::count}) {
    const auto scores = make_scores(target, 3);
    for (const auto& [name, value] : scores->metrics()) EXPECT_TRUE(std::isnan(value)) << name;
  }
}

TEST(Scores, GiveTheBinsBehindTheirCalibrationError) {
  const std::vector<double> probabilities{0.9, 0.1, 0.4, 0.6, 0.2, 0.8};
  Batch batch;
  batch.size = 3;
  batch.labels = {0, 0, 1};
  const auto labels = make_scores(TargetKind::label, 2);
  labels->add(probabilities, {}, batch);
  EXPECT_EQ(labels->reliability().size(), kCalibrationBins);
  EXPECT_DOUBLE_EQ(expected_calibration_error(labels->reliability()), value_of(*labels, "ece"));
  const auto binary = make_scores(TargetKind::binary, 1);
  binary->add(std::vector<double>{0.1, 0.6, 0.8}, {}, batch);
  EXPECT_DOUBLE_EQ(expected_calibration_error(binary->reliability()), value_of(*binary, "ece"));
  EXPECT_TRUE(make_scores(TargetKind::tags, 3)->reliability().empty());
  EXPECT_TRUE(make_scores(TargetKind::real, 1)->reliability().empty());
}

}  // namespace
}  // namespace fedep
