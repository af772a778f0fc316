#include "fedep/sim/rows/client_rows.h"

#include <numeric>
#include <utility>
#include <vector>

#include "fedep/message/check.h"

namespace fedep {
namespace {

GlmOutcome outcome_of(TargetKind target) {
  if (target == TargetKind::binary) return GlmOutcome::yes_no;
  if (target == TargetKind::real) return GlmOutcome::number;
  if (target == TargetKind::count) return GlmOutcome::count;
  fail("rows_of", "outcome", "yes or no, a number or a count", "another");
}

Batch all_examples(const Dataset& data, std::size_t client) {
  std::vector<std::uint32_t> all(data.clients()[client].second);
  std::iota(all.begin(), all.end(), 0u);
  Batch batch;
  data.train_batch(client, all, nullptr, batch);
  return batch;
}

// Dense features in double, a 1 behind each row's.
std::vector<double> with_ones(const Batch& batch, std::size_t features) {
  std::vector<double> x;
  x.reserve(batch.size * (features + 1));
  for (std::size_t i = 0; i < batch.size; ++i) {
    const auto first = batch.dense.begin() + std::ptrdiff_t(i * features);
    x.insert(x.end(), first, first + std::ptrdiff_t(features));
    x.push_back(1);
  }
  return x;
}

}  // namespace

bool has_rows(TargetKind target) {
  return target == TargetKind::binary || target == TargetKind::real || target == TargetKind::count;
}

GlmRows rows_of(const Dataset& data, std::size_t client, const Likelihood& likelihood) {
  const std::size_t features = data.info().feature_count();
  const Batch batch = all_examples(data, client);
  GlmRows rows{.client = data.clients()[client].first,
               .outcome = outcome_of(likelihood.target),
               .noise = likelihood.noise,
               .columns = features + 1,
               .x = with_ones(batch, features)};
  if (rows.outcome == GlmOutcome::yes_no) {
    rows.y.assign(batch.labels.begin(), batch.labels.end());
  } else {
    rows.y.assign(batch.reals.begin(), batch.reals.end());
  }
  rows.offset.assign(batch.log_exposure.begin(), batch.log_exposure.end());
  return rows;
}

ClassRows class_rows_of(const Dataset& data, std::size_t client) {
  if (data.info().target != TargetKind::label) {
    fail("class_rows_of", "outcome", "one of several classes", "another");
  }
  const std::size_t features = data.info().feature_count();
  Batch batch = all_examples(data, client);
  return {.client = data.clients()[client].first,
          .columns = features + 1,
          .classes = data.info().outputs,
          .x = with_ones(batch, features),
          .labels = std::move(batch.labels)};
}

}  // namespace fedep
