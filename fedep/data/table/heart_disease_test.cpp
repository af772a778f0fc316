#include "fedep/data/table/heart_disease.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "fedep/data/test_batches.h"
#include "fedep/data/test_files.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

const DataSettings kSettings{.name = "heart_disease", .path = "heart_disease"};

// Four files of two rows: Switzerland does not measure cholesterol, the VA writes numbers with
// decimals.
std::filesystem::path small_files() {
  const auto folder = std::filesystem::path(testing::TempDir()) / "heart_small" / "heart_disease";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "processed.cleveland.data")
      << "63,1,1,145,233,1,2,150,0,2.3,3,0,6,0\n67,1,4,160,286,0,2,108,1,1.5,2,3,3,2\n";
  std::ofstream(folder / "processed.hungarian.data")
      << "28,1,2,130,132,0,2,185,0,0,?,?,?,0\n29,1,2,120,243,0,0,160,0,0,?,?,?,5\n";
  std::ofstream(folder / "processed.switzerland.data")
      << "32,1,1,95,0,?,0,127,0,.7,1,?,?,1\n34,1,4,115,0,?,?,154,0,.2,1,?,?\n";
  std::ofstream(folder / "processed.va.data")
      << "63.0,1.0,4.0,140.0,260.0,0.0,1.0,112.0,1.0,3.0,2.0,?,?,2\n";
  return folder.parent_path();
}

TEST(HeartDisease, FourFilesAreFourClients) {
  DataSettings settings = kSettings;
  settings.test_fraction = 0;
  const auto data = open_heart_disease(settings, 1, small_files());
  ASSERT_EQ(data->clients().size(), 4u);
  EXPECT_EQ(data->clients()[0], std::pair(std::string("cleveland"), std::size_t(2)));
  EXPECT_EQ(data->clients()[1].second, 1u) << "a diagnosis of 5 there is not";
  EXPECT_EQ(data->clients()[2].second, 1u) << "a record of 13 fields is bad";
  EXPECT_EQ(data->info().skipped_records, 2u);
  EXPECT_EQ(data->info().target, TargetKind::binary);
}

TEST(HeartDisease, ACholesterolOfZeroIsMissing) {
  DataSettings settings = kSettings;
  settings.test_fraction = 0;
  const auto data = open_heart_disease(settings, 1, small_files());
  const auto& names = data->info().feature_names;
  const auto chol = std::size_t(std::find(names.begin(), names.end(), "chol") - names.begin());
  ASSERT_LT(chol, names.size());
  Batch batch;
  const std::vector<std::uint32_t> first = {0};
  data->train_batch(2, first, nullptr, batch);
  EXPECT_EQ(batch.dense[chol], 0.f);
  EXPECT_EQ(batch.labels[0], 1);
  data->train_batch(0, first, nullptr, batch);
  // Of 233, 286, 132 and 260: mean 227.75, variance 13628.75 / 4.
  EXPECT_NEAR(batch.dense[chol], (233 - 227.75) / std::sqrt(3407.1875), 1e-5);
}

TEST(HeartDisease, AMissingHospitalIsRefused) {
  EXPECT_THROW(open_heart_disease(kSettings, 1, testing::TempDir()), InputError);
}

TEST(HeartDisease, TheRealFilesHaveTheirCounts) {
  const std::filesystem::path folder = real_data("heart_disease/processed.va.data");
  if (folder.empty()) GTEST_SKIP() << kNoRealData;
  const auto data = open_heart_disease(kSettings, 1, folder);
  // UCI: 303, 294, 123 and 200 rows; a rounded fifth of each held out.
  const std::vector<std::pair<std::string, std::size_t>> train = {
      {"cleveland", 242}, {"hungarian", 235}, {"switzerland", 98}, {"va", 160}};
  EXPECT_EQ(data->clients(), train);
  EXPECT_EQ(data->test_size(), 61u + 59 + 25 + 40);
  EXPECT_EQ(data->info().skipped_records, 0u);
  EXPECT_EQ(data->info().feature_names.size(), 18u);

  std::map<std::string, std::size_t> rows, sick;
  for (std::size_t k = 0; k < 4; ++k) {
    const Batch batch = training_batch(*data, k);
    for (const float x : batch.dense) EXPECT_LT(std::abs(x), 15.f);
    sick[data->clients()[k].first] +=
        std::size_t(std::accumulate(batch.labels.begin(), batch.labels.end(), 0));
  }
  const Batch test = test_batch(*data);
  for (std::size_t i = 0; i < test.size; ++i) {
    sick[data->test_clients()[data->test_client(i)]] += std::size_t(test.labels[i]);
  }
  // Diagnoses above 0, counted in the files by hand.
  EXPECT_EQ(sick["cleveland"], 139u);
  EXPECT_EQ(sick["hungarian"], 106u);
  EXPECT_EQ(sick["switzerland"], 115u);
  EXPECT_EQ(sick["va"], 149u);
}

}  // namespace
}  // namespace fedep
