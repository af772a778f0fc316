// FedEP between hospitals against the posterior of their pooled rows, by the recipes as they stand
// in recipe/. result/hospitals.md has the numbers.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "fedep/config/read_recipe.h"
#include "fedep/data/registry.h"
#include "fedep/data/test_files.h"
#include "fedep/model/registry.h"
#include "fedep/sim/test_process.h"
#include "test/hospital_study.h"
#include "test/pooled_posterior.h"

namespace fedep {
namespace {

constexpr const char* kHeartFile = "heart_disease/processed.va.data";

Recipe recipe_named(const std::string& name) {
  return read_recipe(std::filesystem::path(FEDEP_RECIPES) / (name + ".toml"));
}

// All that the tests below look at, made once.
struct HeartStudy {
  explicit HeartStudy(const std::filesystem::path& folder)
      : recipe(recipe_named("heart_disease/ep")),
        data(open_dataset(recipe.data, recipe.seed, folder)),
        pooled(sample_posterior(pooled_rows(*data), recipe.server.prior->precision)),
        together(play_recipe(recipe, *data)) {}

  Recipe recipe;
  std::unique_ptr<Dataset> data;
  PooledPosterior pooled;
  ServerState together;
};

const HeartStudy& heart(const std::filesystem::path& folder) {
  static const HeartStudy study(folder);
  return study;
}

// A coefficient and an intercept on two rows, x = ±1: by symmetry the latter has mean 0, and the other's
// moments are integrals over a grid.
TEST(PooledPosterior, HasTheMomentsThatIntegrationGives) {
  PooledRows rows{Eigen::MatrixXd{{1, 1}, {-1, 1}}, Eigen::VectorXd{{1, 0}}};
  double total = 0, first = 0, second = 0;
  for (double w = -6; w <= 6; w += 0.02) {
    for (double b = -6; b <= 6; b += 0.02) {
      const double density =
          std::exp(-0.5 * (w * w + b * b)) / (1 + std::exp(-w - b)) / (1 + std::exp(-w + b));
      total += density;
      first += w * density;
      second += w * w * density;
    }
  }
  const double mean = first / total;
  const PooledPosterior sampled = sample_posterior(rows, 1.0);
  EXPECT_NEAR(sampled.mean[0], mean, 0.03);
  EXPECT_NEAR(sampled.mean[1], 0, 0.03);
  EXPECT_NEAR(sampled.deviation[0], std::sqrt(second / total - mean * mean), 0.03);
  EXPECT_LT(sampled.worst_rhat, 1.01);
}

TEST(Hospitals, ThePooledChainsHaveMixed) {
  const auto folder = real_data(kHeartFile);
  if (folder.empty()) GTEST_SKIP() << kNoRealData;
  EXPECT_LT(heart(folder).pooled.worst_rhat, 1.01);
  EXPECT_GT(heart(folder).pooled.least_effective_draws, 4000);
}

// The bounds themselves, without slack: measured are 0.06 and 0.86 to 1.00.
TEST(Hospitals, FedEpFindsThePooledPosteriorWithin20Rounds) {
  const auto folder = real_data(kHeartFile);
  if (folder.empty()) GTEST_SKIP() << kNoRealData;
  ASSERT_EQ(heart(folder).together.round, 20);
  const Agreement near = agreement(heart(folder).together.global, heart(folder).pooled);
  EXPECT_LT(near.largest_distance(), 0.2);
  EXPECT_GT(near.smallest_ratio(), 0.8);
  EXPECT_LT(near.largest_ratio(), 1.2);
}

// Without Langevin noise a chain ends at the tilted mode, and FedEP at the pooled mode. The
// posterior is skewed: its mean is up to 0.24 standard deviations away.
TEST(Hospitals, NoiselessFedEpEndsAtThePooledMode) {
  const auto folder = real_data(kHeartFile);
  if (folder.empty()) GTEST_SKIP() << kNoRealData;
  Recipe recipe = heart(folder).recipe;
  recipe.client.epochs = 200;
  recipe.phases[0].inference->langevin = false;
  const HostVector<float> means = mean(play_recipe(recipe, *heart(folder).data).global);
  const PooledPosterior& pooled = heart(folder).pooled;
  for (std::size_t i = 0; i < means.size(); ++i) {
    const auto j = Eigen::Index(i);
    EXPECT_NEAR(double(means[i]), pooled.mode[j], 0.02 * pooled.deviation[j]);
  }
}

// Over the held-out rows of all four. (On its own rows a hospital's own model is often better.)
TEST(Hospitals, OneSharedModelPredictsAllHospitalsBetterThanAnyOnesOwn) {
  const auto folder = real_data(kHeartFile);
  if (folder.empty()) GTEST_SKIP() << kNoRealData;
  const HeartStudy& study = heart(folder);
  Evaluation evaluation(*study.data, make_model(study.recipe.model, study.data->info()));
  const Metrics together = evaluation.at(point_estimate(study.together));
  EXPECT_GT(metric(together, "auc"), 0.88);
  EXPECT_LT(metric(together, "nll"), 0.42);
  EXPECT_LT(metric(together, "ece"), 0.10);
  Recipe recipe = study.recipe;
  recipe.client.epochs = 500;
  for (std::size_t k = 0; k < study.data->clients().size(); ++k) {
    const Metrics alone =
        evaluation.at(point_estimate(play_recipe(recipe, *only_client(*study.data, k))));
    EXPECT_GT(metric(together, "auc"), metric(alone, "auc")) << study.data->clients()[k].first;
    EXPECT_LT(metric(together, "nll"), metric(alone, "nll")) << study.data->clients()[k].first;
  }
}

// 185 held-out rows do not tell apart what differs by 0.02.
TEST(Hospitals, FedEpPredictsAsWellAsFedAvgAndFedPa) {
  const auto folder = real_data(kHeartFile);
  if (folder.empty()) GTEST_SKIP() << kNoRealData;
  const HeartStudy& study = heart(folder);
  Evaluation evaluation(*study.data, make_model(study.recipe.model, study.data->info()));
  const Metrics together = evaluation.at(point_estimate(study.together));
  for (const char* other : {"heart_disease/avg", "heart_disease/pa"}) {
    const Metrics theirs =
        evaluation.at(point_estimate(play_recipe(recipe_named(other), *study.data)));
    EXPECT_GT(metric(together, "auc"), metric(theirs, "auc") - 0.02) << other;
    EXPECT_LT(metric(together, "nll"), metric(theirs, "nll") + 0.02) << other;
  }
}

// Stateless, 186 hospitals: means within 0.14 standard deviations of the pooled mode, which itself
// is up to 0.6 from the mean (the intercept); deviations too small where columns go together (creatinine
// and bun, 0.65).
TEST(Hospitals, FedSepEndsNearThePooledModeOfEicu) {
  const auto folder = real_data("eicu_demo/patient.csv.gz");
  if (folder.empty()) GTEST_SKIP() << kNoRealData;
  const Recipe recipe = recipe_named("eicu/sep");
  const auto data = open_dataset(recipe.data, recipe.seed, folder);
  const PooledPosterior pooled =
      sample_posterior(pooled_rows(*data), recipe.server.prior->precision, {.draws = 500});
  const Message q = play_recipe(recipe, *data).global;
  const HostVector<float> means = mean(q);
  for (std::size_t i = 0; i < means.size(); ++i) {
    const auto j = Eigen::Index(i);
    EXPECT_NEAR(double(means[i]), pooled.mode[j], 0.2 * pooled.deviation[j]);
  }
  const Agreement near = agreement(q, pooled);
  EXPECT_LT(near.largest_distance(), 0.8);
  EXPECT_GT(near.smallest_ratio(), 0.55);
  EXPECT_LT(near.largest_ratio(), 1.2);
}

}  // namespace
}  // namespace fedep
