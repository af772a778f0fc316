#include "fedep/data/made_up/random_tags.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fedep/data/fingerprint.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

using testing::HasSubstr;

DataSettings small() {
  return {.name = "random_tags", .clients = 300, .dimension = 2000, .examples = 40, .tags = 50};
}

Batch all_of(const Dataset& data, std::size_t client) {
  std::vector<std::uint32_t> all(data.clients()[client].second);
  std::iota(all.begin(), all.end(), 0u);
  Batch batch;
  data.train_batch(client, all, nullptr, batch);
  return batch;
}

TEST(RandomTags, AreTheSameAtEveryVisitInWhateverBatch) {
  const auto data = open_random_tags(small(), 7), again = open_random_tags(small(), 7);
  for (std::size_t client = 0; client < 20; ++client) {
    const Batch whole = all_of(*data, client);
    EXPECT_EQ(whole, all_of(*again, client));
    ASSERT_EQ(whole.sparse.rows(), whole.size);
    ASSERT_EQ(whole.tags.rows(), whole.size);
    for (std::uint32_t i = 0; i < whole.size; i += 7) {
      Batch one;
      data->train_batch(client, std::vector<std::uint32_t>{i}, nullptr, one);
      const auto begin = whole.sparse.columns.begin() + whole.sparse.offsets[i];
      const auto end = whole.sparse.columns.begin() + whole.sparse.offsets[i + 1];
      EXPECT_EQ(one.sparse.columns, std::vector<std::uint32_t>(begin, end));
    }
  }
  EXPECT_NE(all_of(*data, 0), all_of(*open_random_tags(small(), 8), 0));
}

TEST(RandomTags, AreRowsThatAModelTakes) {
  const auto data = open_random_tags(small(), 7);
  Batch test;
  data->test_batch(0, 500, test);
  for (const Batch& batch : {all_of(*data, 3), test}) {
    for (std::size_t i = 0; i < batch.size; ++i) {
      const auto columns = std::span(batch.sparse.columns)
                               .subspan(batch.sparse.offsets[i],
                                        batch.sparse.offsets[i + 1] - batch.sparse.offsets[i]);
      EXPECT_TRUE(std::ranges::adjacent_find(columns, std::greater_equal()) == columns.end());
      EXPECT_LT(columns.back(), 2000u);
      float share = 0;
      for (std::size_t k = batch.sparse.offsets[i]; k < batch.sparse.offsets[i + 1]; ++k) {
        share += batch.sparse.values[k];
      }
      EXPECT_NEAR(share, 1, 1e-5);
      const std::size_t tags = batch.tags.offsets[i + 1] - batch.tags.offsets[i];
      EXPECT_GE(tags, 1u);
      EXPECT_LE(tags, 3u);
    }
    for (const std::uint32_t tag : batch.tags.columns) EXPECT_LT(tag, 50u);
  }
}

// Guo+23 Table 1: 397 ± 1279 examples a client. Of a lognormal with so long a tail the logarithm's
// moments say more than the sizes' own.
TEST(RandomTags, HaveStackOverflowsSizes) {
  DataSettings settings = small();
  settings.clients = 20000;
  settings.examples = 397;
  const auto data = open_random_tags(settings, 1);
  ASSERT_EQ(data->clients().size(), 20000u);
  double sum = 0, logs = 0, squares = 0;
  for (const auto& [id, examples] : data->clients()) {
    sum += double(examples);
    logs += std::log(double(examples));
    squares += std::log(double(examples)) * std::log(double(examples));
  }
  const double n = 20000, mean = logs / n;
  EXPECT_NEAR(sum / n, 397, 0.1 * 397);
  EXPECT_NEAR(mean, 4.768, 0.03);  // log 397 - s²/2, s² = log(1 + (1279/397)²) = 2.43
  EXPECT_NEAR(squares / n - mean * mean, 2.43, 0.1);

  settings.max_examples = 1000;
  settings.min_examples = 100;
  const auto limited = open_random_tags(settings, 1);
  EXPECT_LT(limited->clients().size(), 12000u);
  for (const auto& [id, examples] : limited->clients()) {
    EXPECT_GE(examples, 100u);
    EXPECT_LE(examples, 1000u);
  }
}

TEST(RandomTags, AreToldByTheirWordsAndLikedByTheirClients) {
  const auto data = open_random_tags(small(), 7);
  std::map<std::uint32_t, std::map<std::uint32_t, int>> tags_with_word;
  std::size_t rare = 0, clients = 0;
  for (std::size_t client = 0; client < 100; ++client) {
    const Batch batch = all_of(*data, client);
    std::map<std::uint32_t, std::size_t> tags;
    for (const std::uint32_t tag : batch.tags.columns) ++tags[tag];
    std::vector<std::size_t> counts;
    for (const auto& [tag, count] : tags) counts.push_back(count);
    std::ranges::sort(counts, std::greater());
    counts.resize(std::min<std::size_t>(counts.size(), 4));
    const auto liked = std::accumulate(counts.begin(), counts.end(), std::size_t(0));
    if (batch.size >= 30) {
      ++clients;
      rare += 10 * liked < 6 * batch.tags.columns.size();
    }
    for (std::size_t i = 0; i < batch.size; ++i) {
      for (std::size_t k = batch.sparse.offsets[i]; k < batch.sparse.offsets[i + 1]; ++k) {
        for (std::size_t t = batch.tags.offsets[i]; t < batch.tags.offsets[i + 1]; ++t) {
          ++tags_with_word[batch.sparse.columns[k]][batch.tags.columns[t]];
        }
      }
    }
  }
  ASSERT_GT(clients, 20u);
  EXPECT_LE(10 * rare, clients);
  int telling = 0;  // words of which most tags are one
  for (const auto& [word, tags] : tags_with_word) {
    int all = 0, most = 0;
    for (const auto& [tag, count] : tags) {
      all += count;
      most = std::max(most, count);
    }
    telling += all >= 20 && 2 * most > all;
  }
  EXPECT_GT(telling, 20);
}

TEST(RandomTags, HaveAFingerprintThoughNobodyLooksAtAllOfThem) {
  DataSettings settings = small();
  settings.clients = 100000;
  settings.examples = 397;  // forty million examples
  const auto fingerprint_of = [&](std::uint64_t seed) {
    return fingerprint(*open_random_tags(settings, seed));
  };
  const std::uint64_t first = fingerprint_of(1);
  EXPECT_EQ(first, fingerprint_of(1));
  EXPECT_NE(first, fingerprint_of(2));
  settings.tags = 51;
  EXPECT_NE(first, fingerprint_of(1));
}

TEST(RandomTags, RefuseToHoldBackWhatTheyDoNotKeep) {
  DataSettings settings = small();
  settings.validation_fraction = 0.1;
  try {
    open_random_tags(settings, 1);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("data.validation_fraction"));
  }
}

}  // namespace
}  // namespace fedep
