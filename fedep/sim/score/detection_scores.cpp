#include "fedep/sim/score/detection_scores.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "fedep/metric/ranking.h"

namespace fedep {
namespace {

constexpr std::size_t kChunk = 500;  // examples of a batch

double largest_probability(TargetKind target, std::span<const double> mean) {
  if (target == TargetKind::binary) return std::max(mean[0], 1 - mean[0]);
  return *std::max_element(mean.begin(), mean.end());
}

Detection detect(std::span<const double> like, std::span<const double> unlike) {
  Ranking ranking;
  ranking.add(like, std::vector<std::int32_t>(like.size(), 0));
  ranking.add(unlike, std::vector<std::int32_t>(unlike.size(), 1));
  return {ranking.auc(), ranking.auc_deviation()};
}

}  // namespace

std::optional<UnlikeSet> unseen_classes_of(const Dataset& data) {
  const Dataset* unlike = data.unlike();
  if (unlike == nullptr || unlike->test_size() == 0) return std::nullopt;
  UnlikeSet out{.name = "classes that nobody trained on"};
  for (std::size_t begin = 0; begin < unlike->test_size(); begin += kChunk) {
    unlike->test_batch(begin, std::min(begin + kChunk, unlike->test_size()),
                       out.batches.emplace_back());
  }
  return out;
}

std::vector<double> energies(Model& model, std::span<const float> theta, const Batch& batch) {
  std::vector<float> logits(batch.size * model.outputs());
  model.logits(theta, batch, {}, logits);
  std::vector<double> out;
  for (std::size_t i = 0; i < batch.size; ++i) {
    const auto row = std::span(logits).subspan(i * model.outputs(), model.outputs());
    const double top = double(*std::max_element(row.begin(), row.end()));
    double sum = 0;
    for (const float logit : row) sum += std::exp(double(logit) - top);
    out.push_back(-top - std::log(sum));
  }
  return out;
}

void UnlikenessScores::add(const Predictions& predictions, std::size_t examples,
                           Columns& to) const {
  const std::size_t outputs = model_.outputs();
  for (std::size_t i = 0; i < examples; ++i) {
    const auto mean = std::span(predictions.mean).subspan(i * outputs, outputs);
    to.max_probability.push_back(1 - largest_probability(model_.target(), mean));
    to.entropy.push_back(predictive_entropy(model_.target(), mean));
  }
}

void UnlikenessScores::add_point(const Predictions& predictions, std::span<const float> theta,
                                 const Batch& batch) {
  add(predictions, batch.size, point_);
  if (model_.target() != TargetKind::label) return;
  const std::vector<double> more = energies(model_, theta, batch);
  point_.energy.insert(point_.energy.end(), more.begin(), more.end());
}

void UnlikenessScores::add_marginal(const Predictions& predictions, const Batch& batch) {
  add(predictions, batch.size, marginal_);
  for (std::size_t i = 0; i < batch.size; ++i) {
    marginal_.mutual_information.push_back(
        mutual_information(model_.target(), predictions, i, model_.outputs()));
  }
}

Detections UnlikenessScores::compare(const Columns& like, const Columns& unlike) {
  Detections out{.max_probability = detect(like.max_probability, unlike.max_probability),
                 .entropy = detect(like.entropy, unlike.entropy)};
  if (!like.energy.empty()) out.energy = detect(like.energy, unlike.energy);
  if (!like.mutual_information.empty()) {
    out.mutual_information = detect(like.mutual_information, unlike.mutual_information);
  }
  return out;
}

DetectionReport detection_of(const UnlikenessScores& like, const UnlikenessScores& unlike,
                             std::string name) {
  DetectionReport out{.unlike = std::move(name),
                      .examples = like.point_.entropy.size(),
                      .unlike_examples = unlike.point_.entropy.size(),
                      .point = UnlikenessScores::compare(like.point_, unlike.point_)};
  if (!like.marginal_.entropy.empty()) {
    out.marginal = UnlikenessScores::compare(like.marginal_, unlike.marginal_);
  }
  return out;
}

}  // namespace fedep
