#include "fedep/data/image/femnist.h"

#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "fedep/data/image/idx.h"
#include "fedep/data/image/image_dataset.h"
#include "fedep/data/image/leaf.h"
#include "fedep/data/image/test_emnist_files.h"
#include "fedep/data/test_batches.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

std::vector<std::uint8_t> bytes_in(const TemporaryFolder& folder, const std::string& name) {
  std::ifstream in(folder.path() / name, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string refusal(const TemporaryFolder& folder, const DataSettings& settings = {}) {
  return message_of<InputError>([&] { open_femnist(settings, 1, folder.path()); });
}

TEST(Femnist, AByteIsTheFloatThatTffStores) {
  // LEAF divides in double, TFF rounds that to float.
  for (int k = 0; k < 256; ++k) {
    EXPECT_EQ(float(k) / 255.0f, float(double(k) / 255.0)) << k;
    EXPECT_EQ(pixel_byte(double(k) / 255.0), k);
    EXPECT_EQ(pixel_byte(double(float(double(k) / 255.0))), k);
  }
  EXPECT_FALSE(pixel_byte(-0.01));
  EXPECT_FALSE(pixel_byte(1.01));
  EXPECT_FALSE(pixel_byte(std::numeric_limits<double>::quiet_NaN()));
}

TEST(Femnist, ClientsAreTheWritersWithATrainingPart) {
  TestImages images = some_emnist(1);
  for (TestImage& image : images) image.test = image.test || image.client == "b";
  const TemporaryFolder folder;
  write_femnist(folder, images);
  const auto data = open_femnist({}, 1, folder.path());
  const std::vector<std::pair<std::string, std::size_t>> expected{{"a", 3}, {"c", 5}};
  EXPECT_EQ(data->clients(), expected);
  EXPECT_EQ(data->test_clients(), (std::vector<std::string>{"a", "c"}));
  EXPECT_EQ(data->test_size(), 2u);
  EXPECT_EQ(data->test_client(0), 0u);
  EXPECT_EQ(data->test_client(1), 1u);
}

TEST(Femnist, WritersWithHeldOutImagesAloneAreCountedAndNamed) {
  TestImages images = some_emnist(1);
  for (TestImage& image : images) image.test = image.test || image.client == "b";
  const TemporaryFolder folder;
  write_femnist(folder, images);
  const DatasetInfo info = open_femnist({}, 1, folder.path())->info();
  EXPECT_EQ(info.skipped_records,
            std::size_t(std::count_if(images.begin(), images.end(),
                                      [](const TestImage& image) { return image.client == "b"; })));
  EXPECT_EQ(info.first_skipped, "client b has held-out examples, but none to train on");
}

TEST(Femnist, IsRefusedIfNobodyHasBothParts) {
  TestImages images = some_emnist(1);
  for (TestImage& image : images) image.test = image.client == "b";
  const TemporaryFolder folder;
  write_femnist(folder, images);
  EXPECT_EQ(
      refusal(folder),
      "femnist: some client must have both training and held-out examples, but none of 2 and 1 "
      "has");
}

TEST(Femnist, APathThatIsAFileIsNamedAsOne) {
  const TemporaryFolder folder;
  const auto file = folder.write("images.csv", std::string_view("x"));
  const std::string end = ": data.path must name a folder, but " + file.string() + " is a file";
  const DataSettings settings{.path = "images.csv"};
  EXPECT_EQ(refusal(folder, settings), "femnist" + end);
  EXPECT_EQ(message_of<InputError>([&] { open_leaf(settings, 1, folder.path()); }), "leaf" + end);
  EXPECT_EQ(message_of<InputError>([&] { open_idx(settings, 1, folder.path()); }), "idx" + end);
}

TEST(Femnist, SmallClientsAndFurtherExamplesAreLeftOutAsSet) {
  const TemporaryFolder folder;
  write_femnist(folder, some_emnist(1));
  const auto data = open_femnist({.min_examples = 4, .max_examples = 4}, 1, folder.path());
  const std::vector<std::pair<std::string, std::size_t>> expected{{"b", 4}, {"c", 4}};
  EXPECT_EQ(data->clients(), expected);
  EXPECT_NE(refusal(folder, {.min_examples = 6}).find("at least 6"), std::string::npos);
}

TEST(Femnist, ExamplesCanBeGivenOutAnew) {
  const TemporaryFolder folder;
  write_femnist(folder, some_emnist(1));
  const auto data = open_femnist({.partition = "iid", .clients = 4}, 1, folder.path());
  ASSERT_EQ(data->clients().size(), 4u);
  for (const auto& client : data->clients()) EXPECT_EQ(client.second, 3u);
  EXPECT_EQ(data->test_size(), 3u);
  EXPECT_EQ(data->test_clients(), (std::vector<std::string>{"test-0"}));
  folder.write("partition_train.i32", std::vector<std::uint8_t>{11, 0, 0, 0, 2, 0, 0, 0});
  folder.write("partition_test.i32", std::vector<std::uint8_t>{0, 0, 0, 0, 2, 0, 0, 0});
  const auto given = open_femnist({.partition = "given", .examples = 2}, 1, folder.path());
  EXPECT_EQ(given->clients().size(), 1u);
  EXPECT_NE(refusal(folder, {.partition = "pachinko"}).find("but is pachinko"), std::string::npos);
  EXPECT_NE(refusal(folder, {.partition = "dirichlett"}).find("did you mean dirichlet"),
            std::string::npos);
}

TEST(Femnist, BadRecordsAreSkippedAndCounted) {
  const TemporaryFolder folder;
  write_femnist(folder, some_emnist(1));
  auto labels = bytes_in(folder, "labels.u8");
  labels[0] = 62;
  folder.write("labels.u8", labels);
  auto splits = bytes_in(folder, "leaf_split.u8");
  splits[5] = 3;
  folder.write("leaf_split.u8", splits);
  auto writers = bytes_in(folder, "writer.u16le");
  writers[2 * 6 + 1] = 1;  // writer 257 of 3
  folder.write("writer.u16le", writers);
  EXPECT_EQ(open_femnist({}, 1, folder.path())->info().skipped_records, 3u);
}

TEST(Femnist, BadFilesAreRefused) {
  const TestImages images = some_emnist(1);
  const auto broken = [&](const std::string& name, std::size_t size) {
    const TemporaryFolder folder;
    write_femnist(folder, images);
    auto bytes = bytes_in(folder, name);
    bytes.resize(size);
    folder.write(name, bytes);
    return refusal(folder);
  };
  EXPECT_NE(broken("images.u8", 784 * 14 + 5).find("must have 11760 bytes, but has 10981"),
            std::string::npos);
  EXPECT_NE(broken("writer.u16le", 29).find("must have 30 bytes, but has 29"), std::string::npos);
  EXPECT_NE(broken("leaf_split.u8", 16).find("must have 15 bytes"), std::string::npos);
  EXPECT_NE(broken("writers.tsv", 10).find("first line"), std::string::npos);
  EXPECT_NE(broken("writers.tsv", 40).find("line 2"), std::string::npos);
}

TEST(Femnist, ACountThatDisagreesIsRefused) {
  const TemporaryFolder folder;
  write_femnist(folder, some_emnist(1));
  folder.write("writers.tsv",
               "index\twriter_id\tcomplete\tn_samples\n0\ta\t1\t4\n1\tb\t1\t5\n2\tc\t1\t7\n");
  EXPECT_NE(refusal(folder).find("writer c must have 7 images"), std::string::npos)
      << refusal(folder);
}

TEST(Femnist, AMissingFileSaysHowToGetIt) {
  const TemporaryFolder folder;
  const std::string message = refusal(folder, {.path = "femnist"});
  EXPECT_NE(message.find("femnist/writers.tsv is missing"), std::string::npos) << message;
  EXPECT_NE(message.find("--data DIR or $FEDEP_DATA"), std::string::npos) << message;
  EXPECT_NE(message.find("`tools/unpack_data` unpacks"), std::string::npos) << message;
}

TEST(Femnist, TheRealDataHaveThePublishedCounts) {
  const auto folder = real_data("femnist/images.u8");
  if (folder.empty()) GTEST_SKIP() << kNoRealData;
  const auto data = open_femnist({.path = "femnist"}, 1, folder);
  std::size_t train = 0;
  for (const auto& client : data->clients()) train += client.second;
  // The data's README: 366 writers with both parts, 52,731 train, 6,146 test.
  EXPECT_EQ(data->clients().size(), 366u);
  EXPECT_EQ(train, 52731u);
  EXPECT_EQ(data->test_size(), 6146u);
  EXPECT_EQ(data->test_clients().size(), 366u);
  EXPECT_EQ(data->info().skipped_records, 9768u);
  EXPECT_EQ(data->info().features, (std::vector<std::int64_t>{28, 28, 1}));

  // Biased towards digits; background is 1.0 and fills most of an image.
  const Batch batch = test_batch(*data);
  std::size_t digits = 0;
  double corner = 0;
  for (std::size_t i = 0; i < batch.size; ++i) {
    ASSERT_TRUE(batch.labels[i] >= 0 && batch.labels[i] < 62);
    digits += batch.labels[i] < 10;
    corner += double(batch.dense[i * 784]);
  }
  EXPECT_NEAR(double(digits) / double(batch.size), 0.71, 0.05);
  EXPECT_GT(corner / double(batch.size), 0.98);
}

}  // namespace
}  // namespace fedep
