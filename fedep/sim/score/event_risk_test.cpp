#include "fedep/sim/score/event_risk.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "fedep/data/dataset.h"
#include "fedep/message/error.h"
#include "fedep/model/registry.h"

namespace fedep {
namespace {

std::unique_ptr<Model> counts() {
  DatasetInfo info;
  info.features = {2};
  info.target = TargetKind::count;
  info.outputs = 1;
  info.has_exposure = true;
  return make_model({.name = "linear"}, info);
}

double probability(float logit) { return 1 / (1 + std::exp(-double(logit))); }

// Three spells, of two, one and three pieces.
const std::vector<std::size_t> kOffsets{0, 2, 3, 6};
Batch pieces() {
  Batch out;
  out.size = 6;
  out.dense = {1, 0, 1, 1, -1, 0, 0.5f, 0, 0.5f, 1, 0.5f, 2};
  out.log_exposure = {0, 1, -2, 3, -1, 5};
  return out;
}
const std::vector<float> kTheta{0.5f, -0.25f, -3};

double hazard(std::size_t spell) {
  const Batch batch = pieces();
  double sum = 0;
  for (std::size_t j = kOffsets[spell]; j < kOffsets[spell + 1]; ++j) {
    sum += std::exp(0.5 * double(batch.dense[2 * j]) - 0.25 * double(batch.dense[2 * j + 1]) - 3 +
                    double(batch.log_exposure[j]));
  }
  return sum;
}

TEST(EventRisk, IsOneMinusTheExponentialOfMinusTheHazardOverItsPieces) {
  const auto risk = event_risk(counts());
  EXPECT_EQ(risk->target(), TargetKind::binary);
  std::vector<float> logits(3);
  risk->logits(kTheta, batch_of_spells(pieces(), kOffsets, 0, 3), {}, logits);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(probability(logits[i]), 1 - std::exp(-hazard(i)), 1e-6);
  }
  EXPECT_GT(probability(logits[2]), 0.5);
}

TEST(EventRisk, OfPartsOfABatchIsTheSame) {
  const auto risk = event_risk(counts());
  std::vector<float> all(3), last(2);
  risk->logits(kTheta, batch_of_spells(pieces(), kOffsets, 0, 3), {}, all);
  risk->logits(kTheta, batch_of_spells(pieces(), kOffsets, 1, 3), {}, last);
  EXPECT_EQ(last, std::vector<float>(all.begin() + 1, all.end()));
  EXPECT_EQ(batch_of_spells(pieces(), kOffsets, 1, 1).size, 0u);
  EXPECT_THROW(batch_of_spells(pieces(), kOffsets, 2, 4), InputError);
}

TEST(EventRisk, StaysFiniteWhereAnEventIsCertainOrHardlyPossible) {
  const auto risk = event_risk(counts());
  Batch batch = pieces();
  batch.log_exposure = {40, 40, 40, -40, -40, -40};
  std::vector<float> logits(3);
  risk->logits(kTheta, batch_of_spells(batch, kOffsets, 0, 3), {}, logits);
  for (const float logit : logits) EXPECT_TRUE(std::isfinite(logit));
  EXPECT_EQ(probability(logits[0]), 1);
  EXPECT_LT(probability(logits[2]), 1e-15);
}

TEST(EventRisk, CannotBeTrainedAndNeedsCounts) {
  const auto risk = event_risk(counts());
  std::vector<float> gradient(3);
  EXPECT_THROW(risk->loss_gradient(kTheta, pieces(), {}, gradient), InputError);
  DatasetInfo info;
  info.features = {2};
  info.target = TargetKind::binary;
  info.outputs = 1;
  EXPECT_THROW(event_risk(make_model({.name = "linear"}, info)), InputError);
}

}  // namespace
}  // namespace fedep
