// What a cohort on a core does in one pass, or only once, against the plain way.

#include "fedep/sim/chain/cpu_cohort.h"

#include <set>

#include <gtest/gtest.h>

#include "fedep/model/linear.h"
#include "fedep/sim/chain/fisher_pass.h"
#include "fedep/sim/test_images.h"
#include "fedep/sim/test_round.h"

namespace fedep {
namespace {

using V = HostVector<float>;

class CpuCohorts : public testing::Test {
 protected:
  CpuCohorts() {
    settings_.client = {.epochs = 1, .batch = 4, .remainder = Remainder::drop};
    for (std::size_t k = 0; k < 2; ++k) visits_.push_back(round_.visit(clients_[k], cavity()));
  }

  Message cavity() const { return from_mean(V(model_->size(), 0.1f), 5.0f); }

  std::unique_ptr<Cohort<V>> cohort() {
    std::vector<ChainInput> inputs;
    for (std::size_t k = 0; k < visits_.size(); ++k) {
      inputs.push_back({*data_, k, visits_[k], settings_});
    }
    return make_cpu_cohort(*model_, inputs);
  }

  std::vector<V> weights(float first) const {
    V theta(model_->size());
    for (std::size_t i = 0; i < theta.size(); ++i) theta[i] = first + 0.01f * float(i % 7);
    return {theta, theta};
  }

  // 1,001 · 5 weights: more than two blocks of normals, and a rest.
  std::unique_ptr<Dataset> data_ = tiny_images({10, 10, 10}, 5, {9, 13});
  std::unique_ptr<Model> model_ =
      make_linear({.features = 1000, .outputs = 5, .target = TargetKind::label});
  std::vector<ClientInfo> clients_ = clients_of(data_->clients());
  ChainSettings settings_;
  TestRound round_{"fed_sep", {.name = "ngvi"}, from_mean(V(model_->size(), 0.2f), 20.0f)};
  std::vector<Visit> visits_;
};

TEST_F(CpuCohorts, DrawWeightsInOnePassWithTheSameBits) {
  const auto made = cohort();
  V mean(model_->size()), root(model_->size());
  for (std::size_t i = 0; i < mean.size(); ++i) {
    mean[i] = 0.3f * float(i % 11) - 1.0f;
    root[i] = 0.5f + 0.25f * float(i % 13);
  }
  for (std::size_t row = 0; row < 2; ++row) {
    for (int draw = 0; draw < 2; ++draw) {
      EXPECT_EQ(made->draw_weights(row, 3, draw, mean, root),
                mean + made->noise(row, 3, draw) / root);
    }
  }
  EXPECT_NE(made->draw_weights(0, 3, 0, mean, root), made->draw_weights(0, 3, 1, mean, root));
}

// A batch is kept from draw to draw; nothing of an earlier draw, step, row or pass may be left in it.
TEST(FisherSteps, AreOthersForEveryBatchAndDrawAndOthersThanAChains) {
  std::set<std::size_t> seen;
  for (int t = 0; t < 40; ++t) {
    for (int draw = 0; draw < int(kMostDraws); ++draw) {
      EXPECT_GE(fisher_step(t, draw), kFisherSteps);
      EXPECT_TRUE(seen.insert(fisher_step(t, draw)).second) << t << " " << draw;
    }
  }
}

TEST_F(CpuCohorts, GiveASquaredGradientThatDoesNotDependOnWhatWasAskedBefore) {
  const auto used = cohort();
  for (const int epochs : {2, 3}) {
    for (int t = 0; t < 4; ++t) {
      for (int draw = 0; draw < 3; ++draw) {
        const std::vector<V> theta = weights(0.1f * float(draw));
        EXPECT_EQ(used->squared_gradients(theta, t, epochs, draw),
                  cohort()->squared_gradients(theta, t, epochs, draw))
            << epochs << " " << t << " " << draw;
      }
    }
  }
}

// The same with one row, where the kept batch is used.
TEST_F(CpuCohorts, OfOneRowKeepTheirBatchUnnoticed) {
  visits_.pop_back();
  const auto used = cohort();
  std::vector<V> theta = weights(0.2f);
  theta.pop_back();
  const std::vector<V> first = used->squared_gradients(theta, 1, 2, 0);
  const std::vector<V> second = used->squared_gradients(theta, 1, 2, 1);
  EXPECT_NE(first, second);  // other labels
  EXPECT_EQ(second, cohort()->squared_gradients(theta, 1, 2, 1));
  EXPECT_EQ(first, used->squared_gradients(theta, 1, 2, 0));
}

}  // namespace
}  // namespace fedep
