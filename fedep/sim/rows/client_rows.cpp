#include "fedep/sim/rows/client_rows.h"

#include <numeric>
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

}  // namespace

bool has_rows(TargetKind target) {
  return target == TargetKind::binary || target == TargetKind::real || target == TargetKind::count;
}

GlmRows rows_of(const Dataset& data, std::size_t client, const Likelihood& likelihood) {
  const auto& [id, examples] = data.clients()[client];
  const std::size_t features = data.info().feature_count();
  std::vector<std::uint32_t> all(examples);
  std::iota(all.begin(), all.end(), 0u);
  Batch batch;
  data.train_batch(client, all, nullptr, batch);
  GlmRows rows{.client = id,
               .outcome = outcome_of(likelihood.target),
               .noise = likelihood.noise,
               .columns = features + 1};
  rows.x.reserve(examples * rows.columns);
  for (std::size_t i = 0; i < examples; ++i) {
    const auto first = batch.dense.begin() + std::ptrdiff_t(i * features);
    rows.x.insert(rows.x.end(), first, first + std::ptrdiff_t(features));
    rows.x.push_back(1);
  }
  if (rows.outcome == GlmOutcome::yes_no) {
    rows.y.assign(batch.labels.begin(), batch.labels.end());
  } else {
    rows.y.assign(batch.reals.begin(), batch.reals.end());
  }
  rows.offset.assign(batch.log_exposure.begin(), batch.log_exposure.end());
  return rows;
}

}  // namespace fedep
