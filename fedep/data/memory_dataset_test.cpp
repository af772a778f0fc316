#include "fedep/data/memory_dataset.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "fedep/message/error.h"

namespace fedep {
namespace {

// Row i: dense {i, -i}, sparse {i: i/2}, label i, tags {0..i-1}, real i.
Batch numbered(std::size_t rows, std::size_t first = 0) {
  Batch out;
  out.size = rows;
  for (std::size_t i = first; i < first + rows; ++i) {
    const auto value = float(i);
    out.dense.insert(out.dense.end(), {value, -value});
    out.sparse.columns.push_back(std::uint32_t(i));
    out.sparse.values.push_back(value / 2);
    out.sparse.offsets.push_back(std::uint32_t(out.sparse.columns.size()));
    out.labels.push_back(std::int32_t(i));
    for (std::uint32_t tag = 0; tag < i; ++tag) out.tags.columns.push_back(tag);
    out.tags.offsets.push_back(std::uint32_t(out.tags.columns.size()));
    out.reals.push_back(value);
  }
  return out;
}

ClientRows clients(const std::vector<std::pair<std::string, std::size_t>>& sizes) {
  ClientRows out;
  for (const auto& [id, rows] : sizes) out.add(id, rows);
  return out;
}

std::unique_ptr<Dataset> small() {
  return memory_dataset(DatasetInfo{}, {clients({{"a", 2}, {"b", 3}}), batch_rows(numbered(5))},
                        {clients({{"a", 1}, {"c", 0}, {"d", 2}}), batch_rows(numbered(3, 5))});
}

TEST(MemoryDataset, ABatchIsTheRowsAskedForInOrder) {
  Batch batch;
  const std::vector<std::uint32_t> examples = {2, 0};
  small()->train_batch(1, examples, nullptr, batch);  // rows 4 and 2
  EXPECT_EQ(batch.size, 2u);
  EXPECT_EQ(batch.dense, (std::vector<float>{4, -4, 2, -2}));
  EXPECT_EQ(batch.sparse, (SparseRows{{0, 1, 2}, {4, 2}, {2, 1}}));
  EXPECT_EQ(batch.labels, (std::vector<std::int32_t>{4, 2}));
  EXPECT_EQ(batch.tags, (SparseRows{{0, 4, 6}, {0, 1, 2, 3, 0, 1}, {}}));
  EXPECT_EQ(batch.reals, (std::vector<float>{4, 2}));
}

TEST(MemoryDataset, AReusedBatchEqualsAFreshOne) {
  const auto data = small();
  Batch used, fresh;
  data->test_batch(0, 3, used);
  const std::vector<std::uint32_t> examples = {1};
  data->train_batch(0, examples, nullptr, used);
  data->train_batch(0, examples, nullptr, fresh);
  EXPECT_EQ(used, fresh);
}

TEST(MemoryDataset, TestBatchesJoinToTheWhole) {
  const auto data = small();
  Batch whole, first, rest;
  data->test_batch(0, 3, whole);
  data->test_batch(0, 1, first);
  data->test_batch(1, 3, rest);
  first.labels.insert(first.labels.end(), rest.labels.begin(), rest.labels.end());
  EXPECT_EQ(whole.labels, first.labels);
  data->test_batch(3, 3, whole);
  EXPECT_EQ(whole.size, 0u);
}

TEST(MemoryDataset, EveryTestRowHasItsClient) {
  const auto data = small();
  EXPECT_EQ(data->test_client(0), 0u);
  EXPECT_EQ(data->test_client(1), 2u) << "a client without rows owns none";
  EXPECT_EQ(data->test_client(2), 2u);
}

TEST(MemoryDataset, WhatIsNotThereIsRefused) {
  const auto data = small();
  Batch batch;
  const std::vector<std::uint32_t> beyond = {2};
  EXPECT_THROW(data->train_batch(0, beyond, nullptr, batch), InputError);
  EXPECT_THROW(data->train_batch(2, {}, nullptr, batch), InputError);
  EXPECT_THROW(data->test_batch(1, 4, batch), InputError);
  EXPECT_THROW(data->test_client(3), InputError);
}

TEST(MemoryDataset, PartsThatDoNotFitAreRefused) {
  const auto make = [](const std::vector<std::pair<std::string, std::size_t>>& train) {
    return memory_dataset(DatasetInfo{}, {clients(train), batch_rows(numbered(2))},
                          {{}, batch_rows({})});
  };
  EXPECT_NO_THROW(make({{"a", 2}}));
  EXPECT_THROW(make({}), InputError);
  EXPECT_THROW(make({{"a", 3}}), InputError);
  EXPECT_THROW(make({{"a", 2}, {"b", 0}}), InputError);
  EXPECT_THROW(make({{"a", 1}, {"a", 1}}), InputError);
  Batch uneven = numbered(2);
  uneven.labels.pop_back();
  EXPECT_THROW(batch_rows(uneven), InputError);
}

}  // namespace
}  // namespace fedep
