#include "fedep/data/image/cifar100.h"

#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include "fedep/data/image/image_augment.h"
#include "fedep/data/test_files.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

// Fine and coarse labels that belong together: 0 apple, 4 fruit; 1 fish, 1; 2 baby, 14; 3 bear, 8.
constexpr std::array<std::array<std::uint8_t, 2>, 4> kLabels{{{4, 0}, {1, 1}, {14, 2}, {8, 3}}};

std::vector<std::uint8_t> records(std::size_t count, std::uint64_t seed) {
  Stream stream({.seed = seed, .purpose = Purpose::test});
  std::vector<std::uint8_t> bytes;
  for (std::size_t i = 0; i < count; ++i) {
    bytes.insert(bytes.end(), kLabels[i % 4].begin(), kLabels[i % 4].end());
    for (int k = 0; k < 3072; ++k) bytes.push_back(std::uint8_t(stream.bits()));
  }
  return bytes;
}

std::vector<std::uint8_t> index_file(const std::vector<int>& indices) {
  std::vector<std::uint8_t> bytes;
  for (const int i : indices) bytes.insert(bytes.end(), {std::uint8_t(i), 0, 0, 0});
  return bytes;
}

constexpr Cifar100Counts kSmall{.train = 12, .test = 4};

void write_small(const TemporaryFolder& folder) {
  folder.write("train.bin", records(12, 1));
  folder.write("test.bin", records(4, 2));
  folder.write("pam_train.i32", index_file({5, 6, 7, 8, 0, 1, 2, 3}));
  folder.write("pam_test.i32", index_file({3, 2, 1, 0}));
}

const DataSettings kGiven{.name = "cifar100", .partition = "given", .augment = true, .examples = 4};

std::string refusal(const TemporaryFolder& folder, const DataSettings& settings = kGiven) {
  return message_of<InputError>([&] { open_cifar100(settings, 1, folder.path(), kSmall); });
}

std::vector<float> expected_crop(const std::vector<std::uint8_t>& file, std::size_t record,
                                 const Crop& crop) {
  std::vector<std::uint8_t> image(3072);
  interleave(kCifarCrop, std::span(file).subspan(record * 3074 + 2, 3072), image);
  std::vector<float> out(1728);
  standardised_crop(kCifarCrop, image, crop, out);
  return out;
}

TEST(Cifar100, TheGivenPartitionNamesClientsAndTheirImages) {
  const TemporaryFolder folder;
  write_small(folder);
  const auto data = open_cifar100(kGiven, 1, folder.path(), kSmall);
  const std::vector<std::pair<std::string, std::size_t>> clients{{"0", 4}, {"1", 4}};
  EXPECT_EQ(data->clients(), clients);
  EXPECT_EQ(data->test_clients(), (std::vector<std::string>{"test-0"}));
  Batch batch;
  data->train_batch(0, std::vector<std::uint32_t>{3, 0}, nullptr, batch);  // records 8 and 5
  EXPECT_EQ(batch.labels, (std::vector<std::int32_t>{0, 1}));
  std::vector<float> expected = expected_crop(records(12, 1), 8, centre_crop(kCifarCrop));
  const auto second = expected_crop(records(12, 1), 5, centre_crop(kCifarCrop));
  expected.insert(expected.end(), second.begin(), second.end());
  EXPECT_EQ(batch.dense, expected);
  data->test_batch(1, 2, batch);  // record 2
  EXPECT_EQ(batch.labels, (std::vector<std::int32_t>{2}));
  EXPECT_EQ(batch.dense, expected_crop(records(4, 2), 2, centre_crop(kCifarCrop)));
}

TEST(Cifar100, AugmentationIsAFunctionOfAddressAndExample) {
  const TemporaryFolder folder;
  write_small(folder);
  const auto data = open_cifar100(kGiven, 1, folder.path(), kSmall);
  const Address address{.seed = 1, .purpose = Purpose::augment, .round = 2, .client = 3, .step = 4};
  Batch pair, single, plain;
  data->train_batch(1, std::vector<std::uint32_t>{0, 2}, &address, pair);
  data->train_batch(1, std::vector<std::uint32_t>{2}, &address, single);
  data->train_batch(1, std::vector<std::uint32_t>{2}, nullptr, plain);
  EXPECT_TRUE(std::equal(single.dense.begin(), single.dense.end(), pair.dense.begin() + 1728));
  EXPECT_EQ(single.dense,
            expected_crop(records(12, 1), 2, random_crop(kCifarCrop, Stream(address), 2)));
  EXPECT_NE(single.dense, plain.dense);

  DataSettings still = kGiven;
  still.augment = false;
  Batch centred;
  open_cifar100(still, 1, folder.path(), kSmall)
      ->train_batch(1, std::vector<std::uint32_t>{2}, &address, centred);
  EXPECT_EQ(centred.dense, plain.dense);
}

TEST(Cifar100, BadRecordsAreSkippedCountedAndLeaveTheirClient) {
  const TemporaryFolder folder;
  write_small(folder);
  auto train = records(12, 1);
  train[6 * 3074 + 1] = 100;  // fine label
  train[7 * 3074] = 20;       // coarse label
  train[11 * 3074] = 3;       // coarse label of another fine one
  folder.write("train.bin", train);
  const auto data = open_cifar100(kGiven, 1, folder.path(), kSmall);
  EXPECT_EQ(data->info().skipped_records, 3u);
  const std::vector<std::pair<std::string, std::size_t>> clients{{"0", 2}, {"1", 4}};
  EXPECT_EQ(data->clients(), clients);
  Batch batch;
  data->train_batch(0, std::vector<std::uint32_t>{1}, nullptr, batch);  // record 8
  EXPECT_EQ(batch.dense, expected_crop(train, 8, centre_crop(kCifarCrop)));
}

TEST(Cifar100, OtherPartitionsGiveOutEveryImage) {
  const TemporaryFolder folder;
  write_small(folder);
  for (const std::string partition : {"iid", "dirichlet", "pachinko"}) {
    const auto data =
        open_cifar100({.partition = partition, .clients = 3}, 1, folder.path(), kSmall);
    ASSERT_EQ(data->clients().size(), 3u);
    for (const auto& client : data->clients()) EXPECT_EQ(client.second, 4u);
    EXPECT_EQ(data->test_size(), 4u);
  }
  EXPECT_NE(refusal(folder, {.name = "cifar100"})
                .find("must be given, dirichlet, pachinko or iid, but is natural"),
            std::string::npos)
      << refusal(folder, {.name = "cifar100"});
}

TEST(Cifar100, BadFilesAreRefused) {
  const auto broken = [](const std::string& name, const std::vector<std::uint8_t>& bytes) {
    const TemporaryFolder folder;
    write_small(folder);
    folder.write(name, bytes);
    return refusal(folder);
  };
  EXPECT_NE(broken("train.bin", records(11, 1)).find("must have 36888 bytes, but has 33814"),
            std::string::npos);
  EXPECT_NE(broken("test.bin", {}).find("must have 12296 bytes, but has 0"), std::string::npos);
  EXPECT_NE(broken("pam_train.i32", index_file({1, 2, 3, 12})).find("in [0, 12), but is 12"),
            std::string::npos);
  EXPECT_NE(broken("pam_train.i32", index_file({1, 2, 3})).find("multiple of 16 bytes"),
            std::string::npos);
  EXPECT_NE(broken("fine_label_names.txt", {'a', ' ', 'b'}).find("must have 100 names, but has 2"),
            std::string::npos);
  const TemporaryFolder empty;
  EXPECT_NE(refusal(empty).find("train.bin is missing"), std::string::npos);
}

// Sets a variable of the environment while it lives.
class WithVariable {
 public:
  WithVariable(const char* name, const std::string& value) : name_(name) {
    const char* const before = std::getenv(name);
    if (before) before_ = before;
    was_set_ = before != nullptr;
    setenv(name, value.c_str(), 1);
  }
  ~WithVariable() { was_set_ ? setenv(name_, before_.c_str(), 1) : unsetenv(name_); }

 private:
  const char* name_;
  std::string before_;
  bool was_set_ = false;
};

TEST(Cifar100Pca, FeaturesDoNotDependOnTheBatchAndTheFitIsKept) {
  const TemporaryFolder folder, cache;
  write_small(folder);
  const WithVariable variable("FEDEP_CACHE", cache.path().string());
  const auto first = open_cifar100_pca(kGiven, 1, folder.path(), kSmall);
  ASSERT_FALSE(std::filesystem::is_empty(cache.path()));
  const auto again = open_cifar100_pca(kGiven, 1, folder.path(), kSmall);
  EXPECT_EQ(first->info().features, (std::vector<std::int64_t>{100}));
  EXPECT_EQ(first->info().name, "cifar100_pca");
  Batch whole, part, kept;
  first->test_batch(0, 4, whole);
  first->test_batch(2, 3, part);
  again->test_batch(0, 4, kept);
  EXPECT_EQ(whole.dense.size(), 400u);
  EXPECT_TRUE(std::equal(part.dense.begin(), part.dense.end(), whole.dense.begin() + 200));
  EXPECT_EQ(kept, whole);

  // A kept fit that is broken is made anew.
  for (const auto& entry : std::filesystem::directory_iterator(cache.path())) {
    std::filesystem::resize_file(entry.path(), 99);
  }
  open_cifar100_pca(kGiven, 1, folder.path(), kSmall)->test_batch(0, 4, kept);
  EXPECT_EQ(kept, whole);
}

TEST(Cifar100, TheRealDataHaveThePublishedCounts) {
  const auto folder = real_data("cifar100/train.bin");
  if (folder.empty()) GTEST_SKIP() << kNoRealData;
  const auto data = open_cifar100({.path = "cifar100", .partition = "given"}, 1, folder);
  // facts 9.1: 500 x 100 and 100 x 100, all images, 500 and 100 per fine label.
  ASSERT_EQ(data->clients().size(), 500u);
  EXPECT_EQ(data->test_clients().size(), 100u);
  EXPECT_EQ(data->test_size(), 10000u);
  EXPECT_EQ(data->info().skipped_records, 0u);
  std::vector<std::uint32_t> all(100);
  std::iota(all.begin(), all.end(), 0u);
  std::map<std::int32_t, int> counts;
  Batch batch;
  double fewest = 100, distinct_sum = 0;
  for (std::size_t c = 0; c < 500; ++c) {
    ASSERT_EQ(data->clients()[c].second, 100u);
    data->train_batch(c, all, nullptr, batch);
    std::set<std::int32_t> distinct;
    for (const std::int32_t label : batch.labels) {
      ++counts[label];
      distinct.insert(label);
    }
    fewest = std::min(fewest, double(distinct.size()));
    distinct_sum += double(distinct.size());
  }
  ASSERT_EQ(counts.size(), 100u);
  for (const auto& [label, count] : counts) EXPECT_EQ(count, 500) << label;
  // Pachinko's clients see few of the 100 labels; with IID ones it would be 63.
  EXPECT_LT(distinct_sum / 500, 40);
  EXPECT_GE(fewest, 1);
}

TEST(Cifar100Pca, TheRealComponentsExplainTheTrainingImages) {
  const auto folder = real_data("cifar100/train.bin");
  if (folder.empty()) GTEST_SKIP() << kNoRealData;
  const auto data = open_cifar100_pca({.path = "cifar100", .partition = "given"}, 1, folder);
  std::vector<std::uint32_t> all(100);
  std::iota(all.begin(), all.end(), 0u);
  std::vector<double> sums(100), squares(100);
  Batch batch;
  for (std::size_t c = 0; c < 500; ++c) {
    data->train_batch(c, all, nullptr, batch);
    for (std::size_t i = 0; i < batch.dense.size(); ++i) {
      sums[i % 100] += double(batch.dense[i]);
      squares[i % 100] += double(batch.dense[i]) * double(batch.dense[i]);
    }
  }
  double total = 0;
  for (std::size_t k = 0; k < 100; ++k) {
    EXPECT_NEAR(sums[k] / 50000, 0.0, 1e-3) << k;
    EXPECT_LE(squares[k], squares[k > 0 ? k - 1 : 0] * 1.0001);
    total += squares[k] / 50000;
  }
  // A standardised image has a square norm of 1728. Subspace iteration in double on a covariance
  // accumulated in double gives this share of it, too.
  EXPECT_NEAR(total / 1728, 0.844147, 1e-5);
  EXPECT_NEAR(squares[0] / 50000, 209.7215, 1e-2);
  EXPECT_NEAR(squares[99] / 50000, 1.74182, 1e-4);
}

}  // namespace
}  // namespace fedep
