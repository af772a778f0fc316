// Plans against what they are lists of, read off the batches directly.
#include "fedep/sim/sparse/step_plan.h"

#include <map>
#include <utility>

#include <gtest/gtest.h>

#include "fedep/random/stream.h"

namespace fedep {
namespace {

constexpr std::size_t kFeatures = 40, kSteps = 6;

// Three words an example, of which some come in most steps and some in one.
void fill(Stream& stream, Batch& batch) {
  batch = {};
  batch.size = 1 + stream.below(5);
  for (std::size_t i = 0; i < batch.size; ++i) {
    for (const std::size_t word : sample_without_replacement(stream, kFeatures, 3)) {
      batch.sparse.columns.push_back(std::uint32_t(word));
      batch.sparse.values.push_back(float(1 + stream.below(9)));
    }
    batch.sparse.offsets.push_back(std::uint32_t(batch.sparse.columns.size()));
  }
}

class Plans : public testing::Test {
 protected:
  // Two events are seen before step 3.
  void plan() {
    for (std::size_t i = 0; i < kSteps; ++i) {
      fill(stream_, plans_.next_batch());
      plans_.add(rows_, i < 3 ? 0 : 2);
    }
    plans_.finish();
  }

  // Rows of a step with the examples that use them and how much; the bias is row kFeatures.
  static std::map<std::uint32_t, std::map<std::uint32_t, float>> uses_of(const Batch& batch) {
    std::map<std::uint32_t, std::map<std::uint32_t, float>> uses;
    for (std::uint32_t i = 0; i < batch.size; ++i) {
      uses[kFeatures][i] = 1.0f;
      for (std::size_t k = batch.sparse.offsets[i]; k < batch.sparse.offsets[i + 1]; ++k) {
        uses[batch.sparse.columns[k]][i] = batch.sparse.values[k];
      }
    }
    return uses;
  }

  Stream stream_{{.seed = 3, .purpose = Purpose::test}};
  KeptRows rows_{kFeatures};
  StepPlans plans_;
};

TEST_F(Plans, ListEveryUseByExampleAndByRow) {
  for (int time = 0; time < 2; ++time) {  // the second plan lives in the first one's memory
    plan();
    ASSERT_EQ(plans_.steps().size(), kSteps);
    for (const StepPlan& step : plans_.steps()) {
      std::map<std::uint32_t, std::map<std::uint32_t, float>> found;
      std::size_t use = 0;
      for (const TouchedRow& row : step.rows) {
        std::uint32_t last = 0;
        for (std::size_t k = 0; k < row.uses; ++k, ++use) {
          const WordUse& one = step.by_row[use];
          EXPECT_TRUE(k == 0 || one.at > last);
          last = one.at;
          found[rows_.row(row.slot)][one.at] = one.value;
        }
      }
      EXPECT_EQ(use, step.by_row.size());
      EXPECT_EQ(found, uses_of(step.batch));
      for (std::size_t k = 0; k < step.by_example.size(); ++k) {
        EXPECT_EQ(rows_.row(step.by_example[k].at), step.batch.sparse.columns[k]);
        EXPECT_EQ(step.by_example[k].value, step.batch.sparse.values[k]);
      }
    }
    plans_.clear();
  }
}

TEST_F(Plans, KnowWhenARowIsTouchedFirstAndNext) {
  plan();
  const auto touches = [&](std::size_t step, std::uint32_t row) {
    return uses_of(plans_.steps()[step].batch).contains(row);
  };
  std::size_t crossing = 0;
  for (std::size_t i = 0; i < kSteps; ++i) {
    std::size_t firsts = 0;
    for (const TouchedRow& row : plans_.steps()[i].rows) {
      const std::uint32_t word = rows_.row(row.slot);
      std::size_t next = i + 1;
      while (next < kSteps && !touches(next, word)) ++next;
      EXPECT_EQ(row.wait, next == kSteps ? 0 : next - i - 1) << i << " " << word;
      EXPECT_EQ(row.events, i < 3 && next >= 3 && next < kSteps) << i << " " << word;
      crossing += row.events;
      bool before = false;
      for (std::size_t earlier = 0; earlier < i; ++earlier) before |= touches(earlier, word);
      const auto& first_use = plans_.steps()[i].first_use;
      EXPECT_EQ(std::count(first_use.begin(), first_use.end(), row.slot), before ? 0 : 1);
      firsts += before ? 0 : 1;
    }
    EXPECT_EQ(plans_.steps()[i].first_use.size(), firsts);
  }
  EXPECT_GT(crossing, 3u);
}

TEST_F(Plans, KeepEveryRowOnceAndTheBiasFirst) {
  plan();
  EXPECT_EQ(rows_.row(0), kFeatures);
  for (std::size_t slot = 0; slot < rows_.size(); ++slot) {
    EXPECT_EQ(rows_.slot(rows_.row(slot)), slot);
  }
  std::size_t kept = 0;
  for (std::size_t row = 0; row <= kFeatures; ++row) kept += rows_.keeps(row) ? 1 : 0;
  EXPECT_EQ(kept, rows_.size());
}

TEST_F(Plans, TakeExamplesWithoutWordsAndWordsWithoutValues) {
  Batch& batch = plans_.next_batch();
  batch.size = 2;
  batch.sparse = {.offsets = {0, 0, 1}, .columns = {7}, .values = {}};
  plans_.add(rows_, 0);
  plans_.finish();
  const StepPlan& step = plans_.steps()[0];
  ASSERT_EQ(step.rows.size(), 2u);
  EXPECT_EQ(step.by_example[0].value, 1.0f);
  EXPECT_EQ(step.by_row.size(), 3u);
}

}  // namespace
}  // namespace fedep
