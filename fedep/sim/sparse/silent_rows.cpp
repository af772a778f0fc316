#include "fedep/sim/sparse/silent_rows.h"

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "fedep/inference/method.h"

namespace fedep {

std::vector<Range> silent_weights(const SparseLinear& model, const Dataset& data,
                                  std::size_t client) {
  constexpr std::size_t kChunk = 1000;  // examples in memory at a time
  const std::size_t width = model.outputs(), count = data.clients()[client].second;
  std::vector<bool> speaks(model.size() / width - 1, false);
  std::vector<std::uint32_t> examples, rows;
  Batch batch;
  for (std::size_t begin = 0; begin < count; begin += kChunk) {
    examples.resize(std::min(kChunk, count - begin));
    std::iota(examples.begin(), examples.end(), std::uint32_t(begin));
    data.train_batch(client, examples, nullptr, batch);
    model.touched_rows(batch, rows);
    for (const std::uint32_t row : rows) speaks[row] = true;
  }
  std::vector<Range> silent;
  for (std::size_t row = 0; row < speaks.size(); ++row) {
    if (speaks[row]) continue;
    if (!silent.empty() && silent.back().end == row * width) {
      silent.back().end += width;
    } else {
      silent.push_back({row * width, (row + 1) * width});
    }
  }
  return silent;
}

bool moves_own_weights_alone(const Recipe& recipe, const Phase& phase) {
  const InferenceSettings& inference = phase.inference;
  if (!phase.stateful() || phase.family == Family::full || recipe.client.weight_decay > 0 ||
      phase.factor_optimizer.name != "sgd") {
    return false;
  }
  if (phase.algorithm->point_estimate) return true;
  const Method& method = find_method(inference.name);
  const bool begins = method.start_left != nullptr && inference.initial_scale > 0;
  // A clip looks at all weights together.
  return phase.factors == FactorStart::flat && method.keeps_cavity && !begins &&
         !inference.langevin && inference.clip_std == 0;
}

bool keeps_precisions(const Message& tilted, const Message& cavity, std::span<const Range> silent) {
  const std::span<const float> found = tilted.lambda_span(), had = cavity.lambda_span();
  if (found.size() != had.size()) return false;
  if (found.size() == 1) return found[0] == had[0];
  return std::ranges::all_of(silent, [&](const Range& range) {
    const std::size_t size = range.end - range.begin;
    return std::ranges::equal(found.subspan(range.begin, size), had.subspan(range.begin, size));
  });
}

}  // namespace fedep
