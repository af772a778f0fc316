#include "fedep/data/image/idx.h"

#include <numeric>

#include <gtest/gtest.h>
#include <zlib.h>

#include "fedep/data/test_files.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

std::vector<std::uint8_t> idx_bytes(const std::vector<std::uint8_t>& shape, std::size_t values,
                                    std::uint8_t first = 0) {
  std::vector<std::uint8_t> bytes{0, 0, 8, std::uint8_t(shape.size())};
  for (const std::uint8_t extent : shape) {
    for (const std::uint8_t byte : {std::uint8_t(0), std::uint8_t(0), std::uint8_t(0), extent}) {
      bytes.push_back(byte);
    }
  }
  for (std::size_t i = 0; i < values; ++i) bytes.push_back(std::uint8_t(first + i));
  return bytes;
}

// 6 training and 2 test images of 2x3; labels 0..5 and 1, 2.
void write_small(const TemporaryFolder& folder) {
  folder.write("train-images-idx3-ubyte", idx_bytes({6, 2, 3}, 36));
  folder.write("train-labels-idx1-ubyte", idx_bytes({6}, 6));
  folder.write("t10k-images-idx3-ubyte", idx_bytes({2, 2, 3}, 12, 100));
  folder.write("t10k-labels-idx1-ubyte", idx_bytes({2}, 2, 1));
}

const DataSettings kIid{.name = "idx", .partition = "iid", .clients = 3};

std::string refusal(const TemporaryFolder& folder, const DataSettings& settings = kIid) {
  return message_of<InputError>([&] { open_idx(settings, 1, folder.path()); });
}

TEST(Idx, ImagesAndLabelsStayTogether) {
  const TemporaryFolder folder;
  write_small(folder);
  const auto data = open_idx(kIid, 1, folder.path());
  EXPECT_EQ(data->info().features, (std::vector<std::int64_t>{2, 3, 1}));
  EXPECT_EQ(data->info().outputs, 6u);
  ASSERT_EQ(data->clients().size(), 3u);
  for (std::size_t c = 0; c < 3; ++c) {
    Batch batch;
    data->train_batch(c, std::vector<std::uint32_t>{1, 0}, nullptr, batch);
    ASSERT_EQ(batch.size, 2u);
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(batch.dense[6 * i], float(6 * batch.labels[i]) / 255.0f);
    }
  }
  Batch test;
  data->test_batch(0, 2, test);
  EXPECT_EQ(std::accumulate(test.labels.begin(), test.labels.end(), 0), 3);
  EXPECT_THROW(data->test_batch(0, 3, test), InputError);
}

TEST(Idx, PackedFilesReadAsPlainOnes) {
  const auto bytes = idx_bytes({6, 2, 3}, 36);
  const TemporaryFolder folder;
  folder.write("plain", bytes);
  const std::string packed = (folder.path() / "packed.gz").string();
  const gzFile out = gzopen(packed.c_str(), "wb");
  gzwrite(out, bytes.data(), unsigned(bytes.size()));
  gzclose(out);
  EXPECT_EQ(read_idx("test", packed), read_idx("test", folder.path() / "plain"));
  std::filesystem::resize_file(packed, std::filesystem::file_size(packed) - 12);
  const std::string message = message_of<InputError>([&] { read_idx("test", packed); });
  EXPECT_NE(message.find("whole gzip file"), std::string::npos) << message;
}

TEST(Idx, TestLabelsBeyondTheTrainingOnesAreSkippedAndCounted) {
  const TemporaryFolder folder;
  write_small(folder);
  folder.write("t10k-labels-idx1-ubyte", idx_bytes({2}, 2, 5));  // 5 and 6
  const auto data = open_idx(kIid, 1, folder.path());
  EXPECT_EQ(data->info().skipped_records, 1u);
  EXPECT_EQ(data->test_size(), 1u);
}

TEST(Idx, BadFilesAreRefused) {
  const auto broken = [](const std::string& name, const std::vector<std::uint8_t>& bytes) {
    const TemporaryFolder folder;
    write_small(folder);
    folder.write(name, bytes);
    return refusal(folder);
  };
  const std::string images = "train-images-idx3-ubyte";
  EXPECT_NE(broken(images, idx_bytes({6, 2, 3}, 35)).find("must have 52 bytes, but has 51"),
            std::string::npos);
  EXPECT_NE(broken(images, {0, 0, 13, 3}).find("begin with 0, 0, 8"), std::string::npos);
  EXPECT_NE(broken(images, {}).find("begin with 0, 0, 8"), std::string::npos);
  EXPECT_NE(broken(images, {0, 0, 8, 3, 0, 0}).find("header of 16 bytes"), std::string::npos);
  EXPECT_NE(broken(images, std::vector<std::uint8_t>{0, 0, 8, 3, 255, 255, 255, 255, 255, 255, 255,
                                                     255, 255, 255, 255, 255})
                .find("at most 2^40"),
            std::string::npos);
  EXPECT_NE(broken(images, idx_bytes({36}, 36)).find("3 or 4 dimensions"), std::string::npos);
  EXPECT_NE(broken("train-labels-idx1-ubyte", idx_bytes({5}, 5)).find("must have 6 labels"),
            std::string::npos);
  EXPECT_NE(broken("t10k-images-idx3-ubyte", idx_bytes({2, 3, 2}, 12)).find("shape [2, 3, 1]"),
            std::string::npos);
  EXPECT_NE(broken("other-train-images-idx3-ubyte", {}).find("one file that ends in"),
            std::string::npos);
}

std::vector<std::uint8_t> numbers(const std::vector<std::int32_t>& values) {
  std::vector<std::uint8_t> bytes;
  for (const std::int32_t value : values) {
    for (int shift = 0; shift < 32; shift += 8) {
      bytes.push_back(std::uint8_t(std::uint32_t(value) >> shift));
    }
  }
  return bytes;
}

// Clients 7 and 3 train, on four images and on two; client 9 has a test image alone.
TEST(Idx, AFileOfNumbersNamesUnequalClientsAndThoseWithTestImagesAlone) {
  const TemporaryFolder folder;
  write_small(folder);
  folder.write("clients_train.i32", numbers({7, 3, 7, 7, 3, 7}));
  folder.write("clients_test.i32", numbers({9, 3}));
  const auto data = open_idx({.name = "idx"}, 1, folder.path());
  EXPECT_EQ(data->clients(),
            (std::vector<std::pair<std::string, std::size_t>>{{"7", 4}, {"3", 2}}));
  Batch batch;
  data->train_batch(1, std::vector<std::uint32_t>{0, 1}, nullptr, batch);
  EXPECT_EQ(batch.labels, (std::vector<std::int32_t>{1, 4}));
  ASSERT_EQ(data->test_size(), 2u);
  data->test_batch(0, 2, batch);
  EXPECT_EQ(data->test_clients()[data->test_client(0)], "3");
  EXPECT_EQ(batch.labels, (std::vector<std::int32_t>{2, 1}));
  EXPECT_EQ(data->test_clients()[data->test_client(1)], "9");
  EXPECT_EQ(data->info().skipped_records, 0u);
}

TEST(Idx, NumbersOfClientsFollowTheirImagesPastBadOnes) {
  const TemporaryFolder folder;
  write_small(folder);
  folder.write("t10k-labels-idx1-ubyte",
               idx_bytes({2}, 2, 5));  // 5, and 6, which nobody trained on
  folder.write("clients_train.i32", numbers({0, 0, 0, 1, 1, 1}));
  folder.write("clients_test.i32", numbers({1, 0}));
  const auto data = open_idx({.name = "idx"}, 1, folder.path());
  ASSERT_EQ(data->test_size(), 1u);
  EXPECT_EQ(data->test_clients()[data->test_client(0)], "1");
  EXPECT_EQ(data->info().skipped_records, 1u);
}

TEST(Idx, BadFilesOfClientsAreRefused) {
  const TemporaryFolder folder;
  write_small(folder);
  const DataSettings natural{.name = "idx"};
  folder.write("clients_train.i32", numbers({0, 0, 0, 1, 1}));
  EXPECT_NE(refusal(folder, natural).find("have 24 bytes"), std::string::npos);
  folder.write("clients_train.i32", numbers({0, 0, 0, 1, 1, -1}));
  EXPECT_NE(refusal(folder, natural).find("entry 5 is -1"), std::string::npos);
  folder.write("clients_train.i32", numbers({0, 0, 0, 1, 1, 1}));
  EXPECT_NE(refusal(folder, natural).find("clients_test.i32 is missing"), std::string::npos);
}

TEST(Idx, NaturalClientsAndMissingFilesAreRefused) {
  const TemporaryFolder folder;
  EXPECT_NE(refusal(folder).find("train-images-idx3-ubyte is missing"), std::string::npos);
  write_small(folder);
  EXPECT_NE(refusal(folder, {.name = "idx"}).find("these data name no clients"), std::string::npos);
}

}  // namespace
}  // namespace fedep
