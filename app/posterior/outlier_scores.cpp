#include "app/posterior/outlier_scores.h"

#include <algorithm>
#include <utility>

#include "fedep/data/append_batch.h"
#include "fedep/data/table/table_features.h"
#include "fedep/sim/score/detection_scores.h"

namespace fedep {
namespace {

constexpr double kPart = 0.95;                 // of held-out examples that are not flagged,
constexpr double kOneOfTwo = (1 + kPart) / 2;  // and are not by one of two scores

OutlierScores distances(const PredictInputs& in) {
  OutlierScores out{.by = "their columns", .threshold = in.info.table->far};
  const std::size_t width = in.info.feature_count();
  const bool is_spell = in.info.table->spec.is_time_to_event();
  for (const Batch& batch : in.batches) {
    for (std::size_t i = 0; i < batch.size; ++i) {
      const std::size_t example = is_spell ? batch.sparse.offsets[i + 1] - 1 : i;  // its last piece
      out.scores.push_back(distance(std::span(batch.dense).subspan(example * width, width)));
    }
  }
  return out;
}

// Evenly over all clients.
std::vector<Batch> some_held_out(const Dataset& data) {
  const std::size_t all = data.test_size(), count = std::min(all, kThresholdExamples);
  std::vector<Batch> out;
  Batch one;
  for (std::size_t i = 0; i < count; ++i) {
    if (i % kPredictChunk == 0) out.emplace_back();
    const std::size_t example = i * all / count;
    data.test_batch(example, example + 1, one);
    append(one, out.back());
  }
  return out;
}

std::vector<double> energies_of(Model& model, std::span<const float> weights,
                                const std::vector<Batch>& batches) {
  std::vector<double> out;
  for (const Batch& batch : batches) {
    const std::vector<double> more = energies(model, weights, batch);
    out.insert(out.end(), more.begin(), more.end());
  }
  return out;
}

std::vector<double> information_of(const Model& model, Predictive& predictive,
                                   const DrawSettings& draws, const std::vector<Batch>& batches) {
  std::vector<double> out;
  predictive.marginal(
      draws, batches.size(), [&](std::size_t i) -> const Batch& { return batches[i]; },
      [&](std::size_t, const Predictions& predictions) {
        for (std::size_t i = 0; i < predictions.entropy.size(); ++i) {
          out.push_back(mutual_information(model.target(), predictions, i, model.outputs()));
        }
      });
  return out;
}

}  // namespace

OutlierScores outlier_scores(const PredictInputs& in, Model& model, Predictive& predictive,
                             const std::optional<DrawSettings>& draws,
                             std::span<const double> information) {
  if (in.info.table) return distances(in);
  const std::vector<Batch> held_out = some_held_out(*in.data);
  const auto weights = predictive.weights().span();
  std::vector<double> ordinary = energies_of(model, weights, held_out);
  std::vector<double> found = energies_of(model, weights, in.batches);
  if (!draws) {
    return {.by = "their energy",
            .scores = std::move(found),
            .threshold = quantile(std::move(ordinary), kPart)};
  }
  return {.by = "their mutual information or energy",
          .scores = {information.begin(), information.end()},
          .threshold = quantile(information_of(model, predictive, *draws, held_out), kOneOfTwo),
          .energies = std::move(found),
          .energy_threshold = quantile(std::move(ordinary), kOneOfTwo)};
}

}  // namespace fedep
