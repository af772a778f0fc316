#include "fedep/data/image/image_file.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fedep/data/image/image_augment.h"
#include "fedep/data/registry.h"
#include "fedep/data/test_files.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

using testing::HasSubstr;

DatasetInfo info_of(const std::string& name, std::vector<std::int64_t> features) {
  DatasetInfo info;
  info.name = name;
  info.features = std::move(features);
  info.outputs = 10;
  return info;
}

TEST(ImageFile, BytesOfAnIdxFileAreFractions) {
  const TemporaryFolder folder;
  folder.write("two", {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 0, 255, 51, 102});
  const Batch batch = read_images(folder.path() / "two", info_of("idx", {1, 2, 1}));
  EXPECT_EQ(batch.size, 2u);
  EXPECT_EQ(batch.dense, (std::vector<float>{0.0f, 1.0f, 0.2f, 0.4f}));
}

TEST(ImageFile, CifarRecordsBecomeCentreCrops) {
  const TemporaryFolder folder;
  std::vector<std::uint8_t> record(2 + kCifarCrop.image_size());
  for (std::size_t i = 0; i < record.size(); ++i) record[i] = std::uint8_t(i * 37 % 251);
  std::vector<std::uint8_t> two = record;
  two.insert(two.end(), record.begin(), record.end());
  folder.write("two.bin", two);
  const Batch batch = read_images(folder.path() / "two.bin", info_of("cifar100", {24, 24, 3}));
  ASSERT_EQ(batch.size, 2u);
  std::vector<std::uint8_t> image(kCifarCrop.image_size());
  interleave(kCifarCrop, std::span(record).subspan(2), image);
  std::vector<float> crop(kCifarCrop.crop_size());
  standardised_crop(kCifarCrop, image, centre_crop(kCifarCrop), crop);
  EXPECT_TRUE(std::equal(crop.begin(), crop.end(), batch.dense.begin()));
  EXPECT_TRUE(std::equal(crop.begin(), crop.end(), batch.dense.begin() + long(crop.size())));
}

TEST(ImageFile, OtherFilesAreRefusedByName) {
  const TemporaryFolder folder;
  folder.write("short.bin", std::vector<std::uint8_t>(3073));
  folder.write("one", {0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 7});
  const auto refusal = [&](const std::string& file, const DatasetInfo& info) {
    return message_of<InputError>([&] { read_images(folder.path() / file, info); });
  };
  EXPECT_THAT(refusal("short.bin", info_of("cifar100", {24, 24, 3})), HasSubstr("3074 bytes"));
  EXPECT_THAT(refusal("one", info_of("femnist", {28, 28, 1})), HasSubstr("[28, 28, 1]"));
  EXPECT_THAT(refusal("one", info_of("synthetic", {60})), HasSubstr("are synthetic"));
  EXPECT_THAT(refusal("none", info_of("idx", {1, 1, 1})), HasSubstr("none"));
}

}  // namespace
}  // namespace fedep
