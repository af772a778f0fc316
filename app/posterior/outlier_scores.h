// How unlike the training data an input is, and from which score on it is flagged.
//
//   const OutlierScores found = outlier_scores(in, *model, predictive, draws, rows.mutual_information);
//   found.is_beyond(i)          // at most 5 % of what is held out would be
//
// A table's row: the mean square of its scaled columns. An image: the mutual information of its outcome and the
// weights, where there are draws of a posterior to disagree, or its energy −log Σ_c exp(logit_c) (Liu+20), each beyond
// what 97.5 % of held-out images have; without such draws its energy alone, beyond what 95 % have.
//
// Energy stays beside mutual information since that has a blind side: the variance of a linear output grows with
// the image, so that draws agree about dark ones (docs/images.md has figures).
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "app/posterior/predict_inputs.h"
#include "fedep/sim/score/predictive.h"

namespace fedep {

// Held-out images that a threshold is taken from, at most, evenly over all of them: so many that one in twenty of
// the training kind is one in twenty, give or take half a percent.
inline constexpr std::size_t kThresholdExamples = 2000;

struct OutlierScores {
  std::string_view by = {};
  std::vector<double> scores = {};
  double threshold = 0;               // NaN, which nothing exceeds, where nothing is held out
  std::vector<double> energies = {};  // beside mutual information, else empty
  double energy_threshold = 0;

  bool is_beyond(std::size_t input) const {
    return scores[input] > threshold || (!energies.empty() && energies[input] > energy_threshold);
  }
};

// `information`: that of each input over `draws`; without draws it is not read.
OutlierScores outlier_scores(const PredictInputs& in, Model& model, Predictive& predictive,
                             const std::optional<DrawSettings>& draws,
                             std::span<const double> information);

}  // namespace fedep
