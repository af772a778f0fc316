// Scores shared out among ranks against those of one process: the same bits, whatever is predicted.

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "fedep/data/memory_dataset.h"
#include "fedep/model/linear.h"
#include "fedep/random/stream.h"
#include "fedep/sim/ranks/test_thread_ranks.h"
#include "fedep/sim/score/evaluation.h"
#include "fedep/sim/score/tempered.h"

namespace fedep {
namespace {

constexpr std::size_t kFeatures = 3, kExamples = 61;

struct Kind {
  std::string name;
  TargetKind target;
  std::size_t outputs;
};

void append_target(TargetKind target, std::size_t outputs, Stream& stream, Batch& batch) {
  switch (target) {
    case TargetKind::label:
    case TargetKind::binary:
      batch.labels.push_back(std::int32_t(stream.below(std::max<std::size_t>(2, outputs))));
      return;
    case TargetKind::tags:
      for (std::uint32_t tag = 0; tag < outputs; ++tag) {
        if (stream.below(2) == 1) batch.tags.columns.push_back(tag);
      }
      batch.tags.offsets.push_back(std::uint32_t(batch.tags.columns.size()));
      return;
    case TargetKind::real:
      batch.reals.push_back(float(stream.normal()));
      return;
    case TargetKind::count:
      batch.reals.push_back(float(stream.below(4)));
      return;
  }
}

Batch some_rows(const Kind& kind, std::size_t rows, std::uint64_t seed) {
  Stream stream({.seed = seed});
  Batch batch;
  for (; batch.size < rows; ++batch.size) {
    for (std::size_t j = 0; j < kFeatures; ++j) batch.dense.push_back(float(stream.normal()));
    append_target(kind.target, kind.outputs, stream, batch);
  }
  return batch;
}

std::unique_ptr<Dataset> some_data(const Kind& kind) {
  ClientRows train, test;
  train.add("a", 2);
  test.add("a", 20);
  test.add("b", kExamples - 20);
  DatasetInfo info{.name = kind.name,
                   .features = {kFeatures},
                   .outputs = kind.outputs,
                   .feature_names = {},
                   .output_names = {}};
  info.target = kind.target;
  return memory_dataset(std::move(info), {std::move(train), batch_rows(some_rows(kind, 2, 1))},
                        {std::move(test), batch_rows(some_rows(kind, kExamples, 2))});
}

// All that an evaluation says, in a row; NaN is equal to itself here.
std::vector<std::string> all_scores(Evaluation& evaluation, const Message& q) {
  std::vector<std::string> out;
  const auto add = [&](const Metrics& metrics) {
    for (const auto& [name, value] : metrics) out.push_back(name + " " + std::to_string(value));
    for (const ReliabilityBin& bin : evaluation.reliability()) {
      out.push_back(std::to_string(bin.count) + " " + std::to_string(bin.accuracy));
    }
    for (const auto& [name, value] : metrics) {  // to the last bit
      if (!std::isnan(value)) out.push_back(std::to_string(std::bit_cast<std::uint64_t>(value)));
    }
  };
  const HostVector<float> theta = mean(q);
  add(evaluation.at(theta));
  add(evaluation.at(theta, {.seed = 3, .round = 4, .examples = 40}));
  add(evaluation.marginal(q, {.seed = 3, .round = 5, .samples = 3}));
  add(evaluation.marginal(q, {.seed = 3, .round = 5, .samples = 3, .examples = 33}));
  return out;
}

class SharedEvaluation : public testing::TestWithParam<Kind> {};

TEST_P(SharedEvaluation, HasTheBitsOfOneProcess) {
  const Kind& kind = GetParam();
  const auto data = some_data(kind);
  const auto make = [&](std::size_t chunk) {
    return Evaluation(
        *data, make_linear({.features = kFeatures, .outputs = kind.outputs, .target = kind.target}),
        {.chunk = chunk});
  };
  HostVector<float> theta(
      make_linear({.features = kFeatures, .outputs = kind.outputs, .target = kind.target})->size());
  fill_normal({.seed = 9}, theta.span());
  const Message q = from_mean(theta, 8.0f);
  const bool tempered = has_temperature(kind.target);
  for (const std::size_t chunk : {7u, 500u}) {
    Evaluation alone = make(chunk);
    const std::vector<std::string> expected = all_scores(alone, q);
    const std::size_t fitted = tempered ? alone.losses_at(theta).examples() : 0;
    const double best = tempered ? alone.losses_at(theta).best() : 1;
    const double best_marginal = tempered ? alone.losses_marginal(q, {.samples = 2}).best() : 1;
    for (const std::size_t size : {1u, 2u, 3u, 11u}) {
      play_ranks(size, [&](Ranks& ranks) {
        Evaluation shared = make(chunk);
        shared.share_among(&ranks);
        EXPECT_EQ(all_scores(shared, q), expected) << size << " ranks, rank " << ranks.rank();
        if (tempered) {
          EXPECT_EQ(shared.losses_at(theta).best(), best);
          EXPECT_EQ(shared.losses_marginal(q, {.samples = 2}).best(), best_marginal);
          EXPECT_EQ(shared.losses_at(theta).examples(), fitted);
        }
        shared.share_among(nullptr);
        EXPECT_EQ(all_scores(shared, q), expected);
      });
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, SharedEvaluation,
                         testing::Values(Kind{"label", TargetKind::label, 4},
                                         Kind{"binary", TargetKind::binary, 1},
                                         Kind{"tags", TargetKind::tags, 6},
                                         Kind{"real", TargetKind::real, 1},
                                         Kind{"count", TargetKind::count, 1}),
                         [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace fedep
