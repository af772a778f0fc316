#include "fedep/sim/score/selective_scores.h"

#include <algorithm>
#include <span>

namespace fedep {
namespace {

struct Answer {
  double confidence = 0;
  bool wrong = false;
};

// Of yes or no the mean is one probability, of classes one each.
Answer answer_of(TargetKind target, std::span<const double> mean, std::int32_t label) {
  if (target == TargetKind::binary) {
    const bool yes = mean[0] > 0.5;
    return {std::max(mean[0], 1 - mean[0]), yes != (label != 0)};
  }
  const auto best = std::max_element(mean.begin(), mean.end());
  return {*best, best - mean.begin() != label};
}

SelectiveCurve curve_of(const SelectiveRisk& scored) {
  SelectiveCurve out{.area = scored.area(), .least_area = scored.least_area()};
  for (std::size_t i = 0; i < out.risk.size(); ++i)
    out.risk[i] = scored.risk(kSelectiveCoverages[i]);
  return out;
}

}  // namespace

bool can_be_selective(TargetKind target) {
  return target == TargetKind::label || target == TargetKind::binary;
}

void SelectiveScores::add_point(const Predictions& predictions, const Batch& targets) {
  for (std::size_t i = 0; i < targets.size; ++i) {
    const auto mean = std::span(predictions.mean).subspan(i * outputs_, outputs_);
    const Answer answer = answer_of(target_, mean, targets.labels[i]);
    point_.add(answer.confidence, answer.wrong);
    entropy_.add(predictive_entropy(target_, mean));
  }
}

void SelectiveScores::add_marginal(const Predictions& predictions, const Batch& targets) {
  for (std::size_t i = 0; i < targets.size; ++i) {
    const auto mean = std::span(predictions.mean).subspan(i * outputs_, outputs_);
    const Answer answer = answer_of(target_, mean, targets.labels[i]);
    const double information = mutual_information(target_, predictions, i, outputs_);
    marginal_.add(answer.confidence, answer.wrong);
    by_information_.add(-information, answer.wrong);
    entropy_marginal_.add(predictive_entropy(target_, mean));
    information_.add(information);
  }
}

SelectiveReport SelectiveScores::report() const {
  SelectiveReport out{.point = curve_of(point_),
                      .entropy = entropy_.value() / double(point_.examples())};
  if (const double n = double(marginal_.examples()); n > 0) {
    out.marginal = curve_of(marginal_);
    out.mutual_information = curve_of(by_information_);
    out.entropy_marginal = entropy_marginal_.value() / n;
    out.information = information_.value() / n;
  }
  return out;
}

}  // namespace fedep
