#include "fedep/data/shard/shards.h"

#include <algorithm>
#include <fstream>

#include <gtest/gtest.h>

#include "fedep/data/fingerprint.h"
#include "fedep/data/image/cifar100.h"
#include "fedep/data/image/cropped_dataset.h"
#include "fedep/data/made_up/random_images.h"
#include "fedep/data/made_up/regression.h"
#include "fedep/data/made_up/synthetic.h"
#include "fedep/data/memory_dataset.h"
#include "fedep/data/registry.h"
#include "fedep/data/shard/shard.h"
#include "fedep/data/shard/shard_manifest.h"
#include "fedep/data/test_files.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

namespace fs = std::filesystem;

class Shards : public testing::Test {
 protected:
  fs::path folder() const { return temporary_.path() / "shards"; }
  std::unique_ptr<Dataset> open(const std::string& path = "shards", bool augment = false) const {
    DataSettings settings{.name = "shards", .path = path};
    settings.augment = augment;
    return open_dataset(settings, 1, temporary_.path());
  }
  std::string refusal(const std::string& path = "shards") const {
    return message_of<InputError>([&] { open(path); });
  }
  void expect_same_again(const Dataset& data) const {
    fs::remove_all(folder());
    write_shards(data, 1, folder());
    const auto again = open();
    EXPECT_EQ(again->clients(), data.clients());
    EXPECT_EQ(again->test_clients(), data.test_clients());
    EXPECT_EQ(fingerprint(*again), fingerprint(data));
    EXPECT_EQ(read_manifest(folder()).fingerprint, fingerprint(data));
  }

  TemporaryFolder temporary_;
};

TEST_F(Shards, PutTogetherAreTheDataThatWereCut) {
  expect_same_again(*open_synthetic({.name = "synthetic", .clients = 5, .dimension = 4}, 1));
  expect_same_again(*open_regression({.name = "regression", .clients = 4, .dimension = 3}, 1, ""));
  expect_same_again(
      *open_random_images({.name = "random_images", .clients = 3, .examples = 4}, 1, ""));
}

TEST_F(Shards, KeepWhichExamplesBelongTogether) {
  Batch rows;
  rows.dense = {1, 2, 3, 4, 5};
  rows.labels = {0, 1, 0, 1, 1};
  rows.size = 5;
  ClientRows clients;
  clients.add("a", 3);
  clients.add("b", 2);
  const DatasetInfo info{
      .name = "grouped", .features = {1}, .outputs = 2, .feature_names = {}, .output_names = {}};
  const auto data =
      memory_dataset(info, {clients, batch_rows(rows), {0, 1, 0, 0, 0}}, {{}, batch_rows({})});
  expect_same_again(*data);
  const auto again = open();
  EXPECT_TRUE(std::ranges::equal(again->groups(0), std::vector<std::uint32_t>{0, 1, 0}));
  EXPECT_TRUE(std::ranges::equal(again->groups(1), std::vector<std::uint32_t>{0, 0}));
  EXPECT_TRUE(open_synthetic({.name = "synthetic", .clients = 2}, 1)->groups(0).empty());
}

// Test clients in another order, one that does not train, one without examples; tags.
TEST_F(Shards, KeepTheOrderOfTestClientsWhateverItIs) {
  ClientRows train_clients, test_clients;
  train_clients.add("a", 1);
  train_clients.add("b/ö", 2);
  test_clients.add("only tested", 2);
  test_clients.add("b/ö", 1);
  test_clients.add("a", 0);
  Batch train, test;
  train.size = test.size = 3;
  train.sparse = {.offsets = {0, 2, 2, 3}, .columns = {0, 4, 1}, .values = {0.5f, 0.5f, 1}};
  train.tags = {.offsets = {0, 1, 2, 2}, .columns = {2, 0}, .values = {}};
  test.sparse = {.offsets = {0, 1, 2, 4}, .columns = {3, 2, 0, 1}, .values = {1, 1, 0.25f, 0.75f}};
  test.tags = {.offsets = {0, 0, 2, 3}, .columns = {0, 1, 2}, .values = {}};
  DatasetInfo info;
  info.features = {5};
  info.sparse = true;
  info.target = TargetKind::tags;
  info.outputs = 3;
  const auto data = memory_dataset(info, {std::move(train_clients), batch_rows(train)},
                                   {std::move(test_clients), batch_rows(test)});
  expect_same_again(*data);
  Batch batch;
  open()->test_batch(0, 3, batch);
  EXPECT_EQ(batch, test);
}

TEST_F(Shards, OfImagesThatAreCroppedGiveTheSameRandomCrops) {
  CroppedImages images;
  for (std::size_t i = 0; i < 4 * kCifarCrop.image_size(); ++i) {
    images.pixels.push_back(std::uint8_t(i * 7 % 253));
  }
  images.labels = {3, 1, 4, 1};
  images.clients.add("0", 3);
  images.clients.add("1", 1);
  DatasetInfo info;
  info.features = {24, 24, 3};
  info.outputs = 5;
  ClientRows test_clients;
  test_clients.add("test-0", 1);
  Batch test;
  test.size = 1;
  test.dense.assign(kCifarCrop.crop_size(), 0.3f);
  test.labels = {2};
  const auto data =
      cropped_dataset(info, std::move(images), {std::move(test_clients), batch_rows(test)}, true);
  expect_same_again(*data);
  const auto again = open("shards", true);
  const Address address{.seed = 5, .purpose = Purpose::augment, .round = 8, .client = 2};
  const std::vector<std::uint32_t> examples{2, 0};
  Batch expected, came;
  data->train_batch(0, examples, &address, expected);
  again->train_batch(0, examples, &address, came);
  EXPECT_EQ(came, expected);
  again->train_batch(0, examples, nullptr, came);
  EXPECT_NE(came, expected);
  EXPECT_TRUE(again->raw_images()->random_crops);
}

// Random crops need the images and the projection, centre crops only what was projected.
TEST_F(Shards, OfProjectedCropsAreTheSameDataWithAndWithoutRandomCrops) {
  for (const bool augment : {true, false}) {
    CroppedImages images{.crop = {.side = 3, .crop_side = 2, .channels = 1}};
    for (int i = 0; i < 3 * 9; ++i) images.pixels.push_back(std::uint8_t(i * i % 250));
    images.labels = {0, 1, 1};
    images.clients.add("a", 2);
    images.clients.add("b", 1);
    Pca pca{.features = 4, .components = 2, .mean = {1, 2, 3, 4}, .basis = {}, .variances = {2, 1}};
    for (int i = 0; i < 8; ++i) pca.basis.push_back(float(i) * 0.125f);
    images.projection = std::make_shared<const PcaProjection>(pca);
    DatasetInfo info;
    info.features = {2};
    info.outputs = 2;
    const auto data =
        cropped_dataset(info, std::move(images), {ClientRows{}, batch_rows(Batch{})}, augment);
    fs::remove_all(folder());
    write_shards(*data, 1, folder());
    const auto again = open("shards", augment);
    EXPECT_EQ(fingerprint(*again), fingerprint(*data)) << augment;
    EXPECT_EQ(again->raw_images().has_value(), augment);
  }
}

TEST_F(Shards, OfCifar100AreCifar100) {
  const fs::path real = real_data("cifar100/train.bin");
  if (real.empty()) GTEST_SKIP() << kNoRealData;
  DataSettings settings{.name = "cifar100", .path = "cifar100", .partition = "given"};
  settings.augment = true;
  expect_same_again(*open_cifar100(settings, 1, real));
}

TEST_F(Shards, OneFileIsADataSetOfOneClient) {
  const auto data = open_synthetic({.name = "synthetic", .clients = 3, .dimension = 4}, 1);
  write_shards(*data, 1, folder());
  const auto one = open("shards/000001-client-1.shard");
  ASSERT_EQ(one->clients().size(), 1u);
  EXPECT_EQ(one->clients()[0], data->clients()[1]);
  EXPECT_EQ(one->info().outputs, 10u);
  std::vector<std::uint32_t> examples(data->clients()[1].second);
  for (std::size_t i = 0; i < examples.size(); ++i) examples[i] = std::uint32_t(i);
  Batch expected, came;
  data->train_batch(1, examples, nullptr, expected);
  one->train_batch(0, examples, nullptr, came);
  EXPECT_EQ(came, expected);
  EXPECT_EQ(one->test_clients(), std::vector<std::string>{"client-1"});
}

class CutData : public Shards {
 protected:
  CutData() {
    write_shards(*open_synthetic({.name = "synthetic", .clients = 3, .dimension = 4}, 1), 1,
                 folder());
  }
  fs::path file(int k) const {
    return folder() / ("00000" + std::to_string(k) + "-client-" + std::to_string(k) + ".shard");
  }
  void edit_manifest(const std::function<void(ShardManifest&)>& edit) const {
    ShardManifest manifest = read_manifest(folder());
    edit(manifest);
    write_manifest(folder(), manifest);
  }
  static bool has(const std::string& text, const std::string& part) {
    return text.find(part) != text.npos;
  }
};

TEST_F(CutData, IsNotWrittenOverOtherThings) {
  const auto data = open_synthetic({.name = "synthetic", .clients = 2, .dimension = 4}, 1);
  EXPECT_TRUE(has(message_of<InputError>([&] { write_shards(*data, 1, folder()); }),
                  "must be new or empty, but is not"));
  EXPECT_THROW(write_shards(*data, 1, file(0)), InputError);
}

TEST_F(CutData, WithAFileMissingIsRefused) {
  fs::remove(file(1));
  EXPECT_TRUE(has(refusal(), "000001-client-1.shard is missing")) << refusal();
}

TEST_F(CutData, WithFilesInEachOthersPlaceIsRefused) {
  fs::rename(file(0), folder() / "x");
  fs::rename(file(1), file(0));
  fs::rename(folder() / "x", file(1));
  EXPECT_TRUE(has(refusal(), "000000-client-0.shard")) << refusal();
}

TEST_F(CutData, WithATruncatedOrDamagedFileIsRefused) {
  const auto size = fs::file_size(file(2));
  fs::resize_file(file(2), size - 1);
  EXPECT_TRUE(has(refusal(), "000002-client-2.shard")) << refusal();
  EXPECT_NE(refusal("shards/000002-client-2.shard"), "");
  fs::resize_file(file(2), size);  // whole again, but for a zero at its end
  EXPECT_TRUE(has(refusal(), "000002-client-2.shard")) << refusal();
}

TEST_F(CutData, WithAFileOfAnotherImportIsRefused) {
  TemporaryFolder other;
  write_shards(*open_synthetic({.name = "synthetic", .clients = 3, .dimension = 5}, 1), 1,
               other.path() / "shards");
  const ShardManifest manifest = read_manifest(other.path() / "shards");
  fs::copy_file(other.path() / "shards" / manifest.shards[1].file, file(1),
                fs::copy_options::overwrite_existing);
  EXPECT_TRUE(has(refusal(), "000001-client-1.shard")) << refusal();
  edit_manifest([&](ShardManifest& own) { own.shards[1] = manifest.shards[1]; });
  EXPECT_TRUE(has(refusal(), "must be of the data set that the first one is of")) << refusal();
}

TEST_F(CutData, WithAManifestThatIsMissingOrWrongIsRefused) {
  edit_manifest([](ShardManifest& manifest) { ++manifest.shards[0].checksum; });
  EXPECT_TRUE(has(refusal(), "must be the manifest's, but differ")) << refusal();
  ShardManifest manifest = read_manifest(folder());
  for (const char* const elsewhere : {"../elsewhere", "/elsewhere", "..", ""}) {
    manifest.shards[0].file = elsewhere;
    write_manifest(folder(), manifest);
    EXPECT_TRUE(has(refusal(), "must be the manifest that")) << refusal();
  }
  std::ofstream(folder() / "manifest.json") << R"({"format":"fedep.shards","version":7})";
  EXPECT_TRUE(has(refusal(), "version must be 1, but is 7")) << refusal();
  std::ofstream(folder() / "manifest.json") << "[]";
  EXPECT_TRUE(has(refusal(), "must be the manifest that")) << refusal();
  fs::remove(folder() / "manifest.json");
  EXPECT_TRUE(has(refusal(), "manifest.json is missing")) << refusal();
}

TEST_F(CutData, WithHeldOutExamplesThatNoOrderNamesIsRefused) {
  edit_manifest([](ShardManifest& manifest) { manifest.test_order.pop_back(); });
  EXPECT_TRUE(has(refusal(), "must be the manifest that")) << refusal();
}

TEST_F(CutData, WithAClientTwiceIsRefused) {
  edit_manifest([](ShardManifest& manifest) {
    manifest.shards.push_back(manifest.shards[0]);
    manifest.test_order.push_back(3);
  });
  EXPECT_TRUE(has(refusal(), "client-0 twice")) << refusal();
}

// One with weights and one without would be read past the end of the weights.
TEST_F(Shards, OfWordsWithAndWithoutWeightsAreRefused) {
  ShardManifest manifest{.data = "words"};
  fs::create_directories(folder());
  for (const bool weighted : {true, false}) {
    Shard shard{.client = weighted ? "a" : "b"};
    shard.info.features = {5};
    shard.info.sparse = true;
    shard.info.outputs = 2;
    shard.train.size = 1;
    shard.train.sparse = {.offsets = {0, 2}, .columns = {1, 3}, .values = {}};
    if (weighted) shard.train.sparse.values = {0.5f, 0.5f};
    shard.train.labels = {1};
    const std::vector<std::byte> bytes = shard_bytes(shard);
    manifest.shards.push_back({.file = shard.client + ".shard",
                               .client = shard.client,
                               .train = 1,
                               .bytes = bytes.size(),
                               .checksum = fingerprint(std::span(bytes))});
    std::ofstream(folder() / manifest.shards.back().file, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), std::streamsize(bytes.size()));
  }
  write_manifest(folder(), manifest);
  EXPECT_NE(refusal().find("b.shard: words must have weights in all shards or in none"),
            std::string::npos)
      << refusal();
}

}  // namespace
}  // namespace fedep
