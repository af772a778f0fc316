#include "fedep/data/image/cropped_dataset.h"

#include <gtest/gtest.h>

#include "fedep/data/test_files.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

constexpr CropShape kShape{.side = 6, .crop_side = 4, .channels = 1};

CroppedImages images() {
  CroppedImages out{.crop = kShape};
  for (std::uint32_t i = 0; i < 3 * 36; ++i) out.pixels.push_back(std::uint8_t(i * i % 251));
  out.labels = {0, 1, 2};
  out.clients.add("a", 1);
  out.clients.add("b", 2);
  return out;
}

DatasetInfo info(std::vector<std::int64_t> features = {4, 4, 1}) {
  DatasetInfo out;
  out.name = "crops";
  out.features = std::move(features);
  out.outputs = 3;
  return out;
}

Part nothing() { return {ClientRows{}, batch_rows(Batch{})}; }

TEST(CroppedDataset, GivesRandomCropsWhereAskedForAndElseTheCentre) {
  const CroppedImages stored = images();
  const auto random = cropped_dataset(info(), images(), nothing(), true);
  const auto centre = cropped_dataset(info(), images(), nothing(), false);
  const Address address{.seed = 3, .purpose = Purpose::augment, .round = 2};
  const std::vector<std::uint32_t> second{1};
  std::vector<float> expected(16);
  Batch batch;
  const std::span<const std::uint8_t> image = std::span(stored.pixels).subspan(2 * 36, 36);

  random->train_batch(1, second, &address, batch);
  standardised_crop(kShape, image, random_crop(kShape, Stream(address), 1), expected);
  EXPECT_EQ(batch.dense, expected);
  EXPECT_EQ(batch.labels, std::vector<std::int32_t>{2});

  standardised_crop(kShape, image, centre_crop(kShape), expected);
  random->train_batch(1, second, nullptr, batch);
  EXPECT_EQ(batch.dense, expected);
  centre->train_batch(1, second, &address, batch);
  EXPECT_EQ(batch.dense, expected);
}

TEST(CroppedDataset, ProjectsItsCrops) {
  Pca pca;
  pca.features = 16;
  pca.components = 2;
  pca.mean.assign(16, 0.5f);
  for (int i = 0; i < 32; ++i) pca.basis.push_back(float(i) * 0.125f);
  pca.variances = {2, 1};
  const PcaProjection whole(pca);
  CroppedImages with = images();
  const auto panels = whole.panels(), offset = whole.offset();
  with.projection =
      std::make_shared<const PcaProjection>(16, std::vector<float>(panels.begin(), panels.end()),
                                            std::vector<float>(offset.begin(), offset.end()));
  const auto data = cropped_dataset(info({2}), std::move(with), nothing(), false);
  Batch batch, crop;
  const std::vector<std::uint32_t> first{0};
  data->train_batch(0, first, nullptr, batch);
  cropped_dataset(info(), images(), nothing(), false)->train_batch(0, first, nullptr, crop);
  std::vector<float> expected(2);
  whole(crop.dense, expected);
  EXPECT_EQ(batch.dense, expected);
}

TEST(CroppedDataset, RefusesPartsThatDoNotFit) {
  CroppedImages few = images();
  few.pixels.pop_back();
  EXPECT_THROW(cropped_dataset(info(), few, nothing(), false), InputError);
  EXPECT_THROW(cropped_dataset(info({5, 5, 1}), images(), nothing(), false), InputError);
  CroppedImages none = images();
  none.clients.add("c", 0);
  EXPECT_THROW(cropped_dataset(info(), none, nothing(), false), InputError);
  CroppedImages twice = images();
  twice.clients.ids[1] = "a";
  EXPECT_THROW(cropped_dataset(info(), twice, nothing(), false), InputError);
  EXPECT_THROW(PcaProjection(16, std::vector<float>(3), std::vector<float>(2)), InputError);
}

}  // namespace
}  // namespace fedep
