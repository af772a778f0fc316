#include "fedep/data/fingerprint.h"

#include <gtest/gtest.h>

#include "fedep/data/made_up/random_images.h"
#include "fedep/data/made_up/synthetic.h"
#include "fedep/data/memory_dataset.h"

namespace fedep {
namespace {

struct Rows {
  std::vector<float> train{1, 2, 3, 4, 5, 6};
  std::vector<std::int32_t> labels{0, 1, 0};
  std::vector<float> test{7, 8};
  std::int32_t test_label = 1;
  std::string first = "a";
  std::size_t first_rows = 1;
  std::string test_client = "a";
  std::size_t outputs = 2;
};

std::uint64_t fingerprint_of(const Rows& rows) {
  ClientRows train, test;
  train.add(rows.first, rows.first_rows);
  train.add("b", 3 - rows.first_rows);
  test.add(rows.test_client, 1);
  Batch some, held;
  some.size = 3;
  some.dense = rows.train;
  some.labels = rows.labels;
  held.size = 1;
  held.dense = rows.test;
  held.labels = {rows.test_label};
  DatasetInfo info;
  info.features = {2};
  info.outputs = rows.outputs;
  return fingerprint(*memory_dataset(info, {std::move(train), batch_rows(std::move(some))},
                                     {std::move(test), batch_rows(std::move(held))}));
}

TEST(Fingerprint, OfEqualDataIsEqual) {
  EXPECT_EQ(fingerprint_of({}), fingerprint_of({}));
  const DataSettings settings{.name = "synthetic"};
  EXPECT_EQ(fingerprint(*open_synthetic(settings, 1)), fingerprint(*open_synthetic(settings, 1)));
  EXPECT_NE(fingerprint(*open_synthetic(settings, 1)), fingerprint(*open_synthetic(settings, 2)));
}

TEST(Fingerprint, SeesEveryPart) {
  std::vector<Rows> others(8);
  others[0].train[5] = 6.5f;
  others[1].labels[0] = 1;
  others[2].test[0] = -7;
  others[3].test_label = 0;
  others[4].first = "c";
  others[5].first_rows = 2;
  others[6].test_client = "b";
  others[7].outputs = 3;
  for (std::size_t i = 0; i < others.size(); ++i) {
    EXPECT_NE(fingerprint_of(others[i]), fingerprint_of({})) << i;
  }
}

// One row of sparse features with tags and a number.
TEST(Fingerprint, SeesEveryPartOfSparseRowsToo) {
  const auto fingerprint_with = [](auto change) {
    Batch row;
    row.size = 1;
    row.sparse = {.offsets = {0, 2}, .columns = {1, 4}, .values = {0.5f, 2}};
    row.tags = {.offsets = {0, 1}, .columns = {3}, .values = {}};
    row.reals = {7};
    change(row);
    ClientRows train, test;
    train.add("a", 1);
    DatasetInfo info;
    info.sparse = true;
    return fingerprint(*memory_dataset(info, {train, batch_rows(row)}, {test, batch_rows({})}));
  };
  const std::uint64_t plain = fingerprint_with([](Batch&) {});
  EXPECT_EQ(plain, fingerprint_with([](Batch&) {}));
  EXPECT_NE(plain, fingerprint_with([](Batch& row) { row.sparse.columns[0] = 2; }));
  EXPECT_NE(plain, fingerprint_with([](Batch& row) { row.sparse.values[1] = 3; }));
  EXPECT_NE(plain, fingerprint_with([](Batch& row) { row.tags.columns[0] = 2; }));
  EXPECT_NE(plain, fingerprint_with([](Batch& row) { row.reals[0] = 8; }));
}

TEST(Fingerprint, OfBytesIsXxh3) {
  // Of nothing, from the algorithm's specification.
  EXPECT_EQ(fingerprint(std::span<const std::byte>()), 0x2d06800538d394c2u);
}

}  // namespace
}  // namespace fedep
