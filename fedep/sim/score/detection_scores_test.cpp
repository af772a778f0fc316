#include "fedep/sim/score/detection_scores.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "fedep/data/made_up/random_images.h"
#include "fedep/data/memory_dataset.h"
#include "fedep/data/unseen_classes.h"
#include "fedep/message/error.h"
#include "fedep/model/linear.h"
#include "fedep/sim/score/posterior_evaluation.h"

namespace fedep {
namespace {

std::unique_ptr<Model> linear(std::size_t features, std::size_t outputs,
                              TargetKind target = TargetKind::label) {
  return make_linear({.features = features, .outputs = outputs, .target = target});
}

Batch examples(std::size_t size, std::vector<float> dense) {
  Batch out;
  out.size = size;
  out.dense = std::move(dense);
  return out;
}

// −log Σ exp of the same number c of two classes is −c − log 2.
TEST(Energies, AreThoseOfTheLogits) {
  const auto model = linear(1, 2);
  const std::vector<float> theta{1, 1, 0.5f, 0.5f};  // logits x + 0.5, twice
  const std::vector<double> found = energies(*model, theta, examples(2, {3, 500}));
  EXPECT_NEAR(found[0], -3.5 - std::log(2.0), 1e-6);
  EXPECT_NEAR(found[1], -500.5 - std::log(2.0), 1e-4);  // no exponential overflows
}

// Two examples of each kind: the like ones are surer in every score.
TEST(Detection, IsPerfectWhereEveryUnlikeExampleIsLessSure) {
  const auto model = linear(1, 2);
  const std::vector<float> theta{2, 0, 0, 0};
  UnlikenessScores like(*model), unlike(*model);
  like.add_point({.mean = {0.9, 0.1, 0.2, 0.8}}, theta, examples(2, {4, 5}));
  unlike.add_point({.mean = {0.6, 0.4, 0.5, 0.5}}, theta, examples(2, {1, 2}));
  like.add_marginal({.mean = {0.9, 0.1, 0.2, 0.8}, .spread = {}, .entropy = {0.32, 0.49}},
                    examples(2, {4, 5}));
  unlike.add_marginal({.mean = {0.6, 0.4, 0.5, 0.5}, .spread = {}, .entropy = {0.1, 0.2}},
                      examples(2, {1, 2}));
  const DetectionReport report = detection_of(like, unlike, "others");
  EXPECT_EQ(report.unlike, "others");
  EXPECT_EQ(report.examples, 2u);
  EXPECT_EQ(report.unlike_examples, 2u);
  EXPECT_EQ(report.point.max_probability.auroc, 1);
  EXPECT_EQ(report.point.entropy.auroc, 1);
  EXPECT_EQ(report.point.energy->auroc, 1);
  EXPECT_FALSE(report.point.mutual_information);
  EXPECT_EQ(report.marginal->mutual_information->auroc, 1);
  EXPECT_FALSE(report.marginal->energy);
  // The other way round nothing is as it should be.
  EXPECT_EQ(detection_of(unlike, like).point.entropy.auroc, 0);
  EXPECT_EQ(detection_of(like, like).point.entropy.auroc, 0.5);
}

// Draws that agree in doubt are no sign of an unlike example: mutual information alone knows.
TEST(Detection, ByMutualInformationTellsDoubtFromDisagreement) {
  const auto model = linear(1, 2);
  UnlikenessScores like(*model), unlike(*model);
  const Batch one = examples(1, {0});
  like.add_marginal({.mean = {0.5, 0.5}, .spread = {}, .entropy = {std::log(2.0)}}, one);
  unlike.add_marginal({.mean = {0.6, 0.4}, .spread = {}, .entropy = {0.1}}, one);
  const Detections found = *detection_of(like, unlike).marginal;
  EXPECT_EQ(found.entropy.auroc, 0);
  EXPECT_EQ(found.max_probability.auroc, 0);
  EXPECT_EQ(found.mutual_information->auroc, 1);
}

TEST(Detection, OfYesOrNoHasNoEnergyAndIsAsSureOfANo) {
  const auto model = linear(1, 1, TargetKind::binary);
  const std::vector<float> theta{1, 0};
  UnlikenessScores like(*model), unlike(*model);
  like.add_point({.mean = {0.1}}, theta, examples(1, {0}));
  unlike.add_point({.mean = {0.8}}, theta, examples(1, {0}));
  const Detections found = detection_of(like, unlike).point;
  EXPECT_FALSE(found.energy);
  EXPECT_EQ(found.max_probability.auroc, 1);
}

// A posterior with the pictures of eight classes as weights, and two classes that it never saw.
class UnseenPictures : public testing::Test {
 protected:
  UnseenPictures() {
    DataSettings settings{.name = "random_images", .partition = "iid", .clients = 5};
    settings.examples = 100;
    settings.test_fraction = 0.5;
    data_ = without_classes(open_random_images(settings, 11, ""), {"3", "7"}, 0);
    const std::size_t features = data_->info().feature_count(), outputs = data_->info().outputs;
    model_ = linear(features, outputs);
    // Sums of each class over training images.
    std::vector<double> sum(features * outputs), count(outputs);
    std::vector<std::uint32_t> rows;
    Batch batch;
    for (std::size_t c = 0; c < data_->clients().size(); ++c) {
      rows.resize(data_->clients()[c].second);
      for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = std::uint32_t(i);
      data_->train_batch(c, rows, nullptr, batch);
      for (std::size_t i = 0; i < batch.size; ++i) {
        const auto label = std::size_t(batch.labels[i]);
        count[label] += 1;
        for (std::size_t k = 0; k < features; ++k) {
          sum[k * outputs + label] += double(batch.dense[i * features + k]);
        }
      }
    }
    // log p(class | image) of normal noise around the classes' pictures, at a variance above the images' own.
    constexpr double kScale = 0.1;
    HostVector<float> mean(model_->size());
    for (std::size_t k = 0; k < features; ++k) {
      for (std::size_t c = 0; c < outputs; ++c) {
        const double picture = sum[k * outputs + c] / count[c];
        mean[k * outputs + c] = float(kScale * picture);
        mean[features * outputs + c] -= float(kScale * picture * picture / 2);
      }
    }
    state_.phase = 0;
    state_.round = 3;
    state_.global = from_mean(mean, constant_like(mean, 1e4f));
  }

  PosteriorEvaluation evaluated(std::span<const UnlikeSet> unlike) {
    return evaluate_posterior(*data_, *model_, state_, DrawSettings{.samples = 20}, {}, unlike);
  }

  std::unique_ptr<Dataset> data_;
  std::unique_ptr<Model> model_;
  ServerState state_;
};

TEST_F(UnseenPictures, AreNoticedByEveryScore) {
  const UnlikeSet unseen = unseen_classes_of(*data_).value();
  const PosteriorEvaluation result = evaluated(std::vector{unseen});
  ASSERT_EQ(result.detection.size(), 1u);
  const DetectionReport& found = result.detection[0];
  EXPECT_EQ(found.examples, data_->test_size());
  EXPECT_EQ(found.unlike_examples, data_->unlike()->test_size());
  EXPECT_GT(found.unlike_examples, 20u);
  EXPECT_GT(found.point.entropy.auroc, 0.9);
  EXPECT_GT(found.point.max_probability.auroc, 0.9);
  EXPECT_GT(found.point.energy->auroc, 0.8);
  EXPECT_GT(found.marginal->mutual_information->auroc, 0.9);
  EXPECT_LT(found.marginal->mutual_information->deviation, 0.1);
}

// Held-out examples against themselves: every pair is there both ways round.
TEST_F(UnseenPictures, WouldBeNothingWereTheyTheHeldOutOnes) {
  UnlikeSet same{.name = "the same"};
  data_->test_batch(0, data_->test_size(), same.batches.emplace_back());
  const PosteriorEvaluation result = evaluated(std::vector{same});
  EXPECT_EQ(result.detection[0].point.entropy.auroc, 0.5);
  EXPECT_EQ(result.detection[0].point.energy->auroc, 0.5);
  EXPECT_EQ(result.detection[0].marginal->mutual_information->auroc, 0.5);
}

TEST_F(UnseenPictures, ChangeNoOtherScore) {
  const PosteriorEvaluation with = evaluated(std::vector{unseen_classes_of(*data_).value()});
  const PosteriorEvaluation without = evaluated({});
  EXPECT_EQ(with.metrics, without.metrics);
  EXPECT_TRUE(without.detection.empty());
}

TEST(Detection, NeedsClasses) {
  Batch rows;
  rows.size = 1;
  rows.dense = {1};
  rows.reals = {1};
  ClientRows clients;
  clients.add("a", 1);
  DatasetInfo info;
  info.name = "numbers";
  info.features = {1};
  info.target = TargetKind::real;
  info.outputs = 1;
  const auto data = memory_dataset(info, {clients, batch_rows(rows)}, {clients, batch_rows(rows)});
  const auto model = linear(1, 1, TargetKind::real);
  ServerState state;
  state.global = from_mean(HostVector<float>(2), constant_like(HostVector<float>(2), 1.0f));
  const std::vector<UnlikeSet> unlike(1);
  EXPECT_THROW(evaluate_posterior(*data, *model, state, {}, {}, unlike), InputError);
  EXPECT_FALSE(unseen_classes_of(*data));
}

}  // namespace
}  // namespace fedep
