// Which minibatches and draws the rows of a Fisher pass have: every one of every client once.
#include "fedep/sim/gpu/cuda_order.h"

#include <set>
#include <string>
#include <tuple>

#include <gtest/gtest.h>

#include "fedep/sim/chain/fisher_pass.h"

namespace fedep {
namespace {

constexpr int kEpochs = 2;
constexpr BatchRoom kRoom{.clients = 5, .examples = 4};  // the fifth client is not there
const std::vector<std::size_t> kSizes{9, 0, 12, 3};

Population four_clients() {
  std::vector<std::pair<std::string, std::size_t>> clients;
  for (const std::size_t size : kSizes) {
    clients.emplace_back("client-" + std::to_string(clients.size()), size);
  }
  return make_population(clients);
}

class CudaOrder : public testing::Test {
 protected:
  CudaOrder() : population_(four_clients()) {
    for (std::size_t c = 0; c < population_.size(); ++c) visits_.push_back({population_[c], c, {}});
    settings_.client.batch = int(kRoom.examples);
  }

  CohortRound round() const { return {3, 7, settings_, visits_}; }
  std::size_t most(const std::vector<Minibatches>& passes) const {
    std::size_t most = 0;
    for (const Minibatches& pass : passes) most = std::max(most, pass.size());
    return most;
  }

  Population population_;
  ChainSettings settings_;
  std::vector<CohortVisit> visits_;
};

TEST_F(CudaOrder, RowsOfAClientAreItsNextMinibatchesEachOnce) {
  const std::vector<Minibatches> passes = fisher_passes(round(), kEpochs);
  for (const std::size_t at_once : {1, 2, 4, 20}) {
    const FisherRows rows{.of = FisherRows::Of::minibatches, .at_once = at_once};
    const CohortOrder order = fisher_order(kRoom, round(), passes, rows);
    ASSERT_EQ(order.clients, kRoom.clients * at_once);
    ASSERT_EQ(order.steps(), (most(passes) + at_once - 1) / at_once);
    std::set<std::pair<std::size_t, int>> seen;
    for (std::size_t step = 0; step < order.steps(); ++step) {
      for (std::size_t row = 0; row < order.clients; ++row) {
        const std::size_t i = step * order.clients + row, c = row / at_once;
        if (order.counts[i] == 0) {  // then all that follow of the client are empty too
          if (row % at_once + 1 < at_once) {
            EXPECT_EQ(order.counts[i + 1], 0);
          }
          continue;
        }
        ASSERT_LT(c, kSizes.size());
        const int t = rows.minibatch(step, row % at_once);
        const auto expected = passes[c][std::size_t(t)];
        EXPECT_EQ(order.own_steps[i], fisher_step(t, 0));
        EXPECT_EQ(order.client[row], c);
        ASSERT_EQ(std::size_t(order.counts[i]), expected.size());
        EXPECT_TRUE(std::equal(expected.begin(), expected.end(),
                               order.examples.begin() + std::ptrdiff_t(i * order.rows)));
        EXPECT_TRUE(seen.emplace(c, t).second);
      }
    }
    std::size_t all = 0;
    for (const Minibatches& pass : passes) all += pass.size();
    EXPECT_EQ(seen.size(), all);
  }
}

TEST_F(CudaOrder, RowsOfAClientAreDrawsForOneMinibatch) {
  const std::vector<Minibatches> passes = fisher_passes(round(), kEpochs);
  constexpr int kDraws = 6;
  const FisherRows rows{.of = FisherRows::Of::draws, .at_once = 3};
  const CohortOrder order = fisher_order(kRoom, round(), passes, rows);
  ASSERT_EQ(order.steps(), most(passes));
  std::set<std::tuple<std::size_t, int, int>> seen;
  for (std::size_t step = 0; step < order.steps(); ++step) {
    for (std::size_t row = 0; row < order.clients; ++row) {
      const std::size_t i = step * order.clients + row, c = row / rows.at_once;
      const bool has = c < kSizes.size() && step < passes[c].size();
      ASSERT_EQ(order.counts[i], has ? std::int32_t(passes[c][step].size()) : 0);
      if (!has) continue;
      EXPECT_EQ(order.own_steps[i], fisher_step(int(step), 0));
      for (int first = 0; first < kDraws; first += int(rows.at_once)) {
        const int draw = rows.draw(first, row % rows.at_once);
        EXPECT_TRUE(seen.emplace(c, rows.minibatch(step, row % rows.at_once), draw).second);
      }
    }
  }
  std::size_t all = 0;
  for (const Minibatches& pass : passes) all += pass.size();
  EXPECT_EQ(seen.size(), all * kDraws);
}

TEST_F(CudaOrder, ChainsTakeTheirOwnStepsAndRestUntilTheLongestIsDone) {
  settings_.client.epochs = 3;
  settings_.client.remainder = Remainder::keep;
  const ChainOrder chain = chain_order(kRoom, round());
  EXPECT_EQ(chain.own_batches, (std::vector<std::size_t>{3, 0, 3, 1}));
  EXPECT_EQ(chain.epoch_length, 3u);
  ASSERT_EQ(chain.order.steps(), 9u);
  for (std::size_t step = 0; step < 9; ++step) {
    for (std::size_t c = 0; c < kRoom.clients; ++c) {
      const std::size_t i = step * kRoom.clients + c, within = step % 3;
      const std::size_t own = c < kSizes.size() ? chain.own_batches[c] : 0;
      EXPECT_EQ(chain.order.counts[i] > 0, within < own) << step << " " << c;
      if (within < own) {
        EXPECT_EQ(chain.order.own_steps[i], step / 3 * own + within);
      }
    }
  }
}

}  // namespace
}  // namespace fedep
