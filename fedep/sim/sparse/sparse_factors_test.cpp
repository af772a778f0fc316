#include "fedep/sim/sparse/sparse_factors.h"

#include <functional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fedep/config/read_recipe.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr std::string_view kSparse = R"(
[data]
name = "random_tags"
clients = 40
dimension = 500
examples = 10
tags = 4
[server]
clients_per_round = 4
prior = { precision = 0.1 }
[[phase]]
algorithm = "fed_ep"
rounds = 3
[phase.inference]
name = "laplace"
[checkpoint]
sparse = true
)";

struct Planned {
  Recipe recipe;
  std::unique_ptr<Task> task;
  std::vector<Phase> phases;
};

Planned plan(const std::vector<std::string>& changes) {
  Planned out{parse_recipe(kSparse, "recipe", changes), nullptr, {}};
  out.task = make_task(out.recipe, "");
  out.phases =
      plan_phases(out.recipe, [&](std::string_view name) { return out.task->family_of(name); });
  mark_shared_means(out.recipe, out.phases);
  return out;
}

std::string refusal(const std::vector<std::string>& changes) {
  const Planned planned = plan(changes);
  try {
    check_sparse_factors(planned.recipe, planned.phases, *planned.task);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(SparseFactors, AreHadWithWhatSaysNothingWhereDataDoNot) {
  EXPECT_EQ(refusal({}), "");
  EXPECT_EQ(refusal({"phase.0.inference.name=ngvi"}), "");
  EXPECT_EQ(refusal({"phase.0.inference.clip_std=2"}), "");
}

TEST(SparseFactors, AreRefusedByTheNameOfWhatMakesThemDense) {
  const auto expect = [](const std::vector<std::string>& changes, const std::string& key,
                         const std::string& why) {
    EXPECT_THAT(refusal(changes),
                AllOf(HasSubstr("checkpoint.sparse"), HasSubstr(key), HasSubstr(why)));
    std::vector<std::string> unasked = changes;
    unasked.push_back("checkpoint.sparse=false");
    EXPECT_EQ(refusal(unasked), "");
  };
  expect({"phase.0.inference.name=sample_moments", "phase.0.inference.shrinkage=0.1",
          "client.epochs=2"},
         "phase.0.inference.name", "sample_moments");
  expect({"phase.0.inference.name=ivon", "phase.0.inference.initial_scale=0.1"},
         "phase.0.inference.name", "ivon");
  expect({"phase.0.inference.name=ngvi", "phase.0.inference.initial_scale=0.1"},
         "phase.0.inference.initial_scale", "0.1");
  expect({"phase.0.inference.langevin=true"}, "phase.0.inference.langevin", "noise");
  expect({"phase.0.factors=carry_mean"}, "phase.0.factors", "carry_mean");
  expect({"client.weight_decay=0.001"}, "client.weight_decay", "0.001");
  expect({"server.factor_optimizer.name=adagrad"}, "server.factor_optimizer", "adagrad");
  expect({"server.factor_optimizer.momentum=0.9"}, "server.factor_optimizer.momentum", "0.9");
  expect({"phase.0.optimizer.name=adagrad"}, "phase.0.optimizer", "adagrad");
  expect({"data.name=synthetic", "data.dimension=5"}, "synthetic", "every weight");
}

// With one precision for all weights factors refer to q's means.
TEST(SparseFactors, AreHadWithOnePrecisionForAllWeights) {
  const auto with = [](std::vector<std::string> changes) {
    changes.insert(changes.begin(), "phase.0.inference.name=scaled_identity");
    return refusal(changes);
  };
  EXPECT_EQ(with({}), "");
  EXPECT_EQ(with({"phase.0.factors=carry_mean"}), "");
  EXPECT_EQ(with({"client.weight_decay=0.001"}), "");
  EXPECT_EQ(with({"phase.0.guard=skip"}), "");
  EXPECT_EQ(with({"phase.0.rounds=39"}), "");
  EXPECT_THAT(with({"phase.0.rounds=40"}), AllOf(HasSubstr("phase.0.rounds"), HasSubstr("40")));
  EXPECT_THAT(with({"phase.0.guard=back_off"}), HasSubstr("phase.0.guard"));
  EXPECT_THAT(with({"phase.0.inference.langevin=true"}), HasSubstr("langevin"));
  EXPECT_THAT(with({"phase.0.temperature=2"}), HasSubstr("temperature"));
  EXPECT_THAT(with({"checkpoint.factors=false"}), HasSubstr("checkpoint.factors"));
  EXPECT_THAT(with({"phase.0.optimizer.name=adagrad"}), HasSubstr("adagrad"));
  EXPECT_THAT(with({"server.factor_optimizer.momentum=0.9"}), HasSubstr("momentum"));
  EXPECT_THAT(with({"phase.0.schedule={visit_rate={kind=\"linear\",to=0.1}}"}),
              HasSubstr("visit_rate"));
}

TEST(SparseFactors, ReferToMeansWhereAMethodMovesWeightsWithoutData) {
  const auto shares = [](const std::vector<std::string>& changes) {
    return plan(changes).phases[0].shares_means;
  };
  EXPECT_TRUE(shares({"phase.0.inference.name=scaled_identity"}));
  EXPECT_FALSE(shares({"phase.0.inference.name=scaled_identity", "checkpoint.sparse=false"}));
  EXPECT_FALSE(shares({"phase.0.inference.name=scaled_identity", "phase.0.algorithm=fed_sep"}));
  EXPECT_FALSE(shares({"phase.0.inference.name=map"})) << "one precision, but the cavity's";
  EXPECT_FALSE(shares({}));
  EXPECT_THAT(refusal({"phase.0.inference.name=map", "client.weight_decay=0.001"}),
              HasSubstr("weight_decay"));
  EXPECT_EQ(refusal({"phase.0.inference.name=map"}), "");
}

TEST(SparseFactors, OfPhasesWithoutMemoryAreNobodysConcern) {
  EXPECT_EQ(refusal({"phase.0.algorithm=fed_sep", "phase.0.inference.name=scaled_identity"}), "");
}

TEST(SparseFactors, AreNotOnDevicesThatKeepAllNumbers) {
  Recipe recipe = plan({}).recipe;
  EXPECT_THROW(refuse_sparse_factors(recipe, "cuda"), InputError);
  recipe.checkpoint.sparse = false;
  EXPECT_NO_THROW(refuse_sparse_factors(recipe, "cuda"));
}

TEST(WeightsTouched, AreThoseOfAClientsWordsWhereFactorsAreSparse) {
  const auto touched = [](const std::vector<std::string>& changes) {
    const Planned planned = plan(changes);
    return weights_touched(planned.recipe, planned.phases, *planned.task).at(0);
  };
  constexpr std::size_t kAll = 501 * 4;
  EXPECT_GT(touched({}), 20u * 4);
  EXPECT_LT(touched({}), kAll / 2);
  EXPECT_EQ(touched({"checkpoint.sparse=false"}), touched({}));
  EXPECT_EQ(touched({"client.weight_decay=0.001", "checkpoint.sparse=false"}), kAll);
  EXPECT_EQ(touched({"phase.0.algorithm=fed_sep"}), 0u);
}

}  // namespace
}  // namespace fedep
