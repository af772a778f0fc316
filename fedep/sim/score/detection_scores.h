// Whether a posterior notices examples unlike those it was trained on: classes that were left out of training, or
// images of another data set. Each score is higher where an example looks less like training's; its area under the
// ROC curve (AUROC) is the probability that an unlike example scores above a held-out one of the training kind,
// ties counting one half. 0.5 tells nothing apart, 1 everything.
//
//   UnlikenessScores like(model), unlike(model);
//   like.add_point(predictions, weights, batch);      // and add_marginal() of predictions over draws
//   detection_of(like, unlike).marginal->mutual_information->auroc
//
// Scores: 1 − the largest probability, the entropy of the prediction, at the weights' point also the energy
// −log Σ_c exp(logit_c) (Liu+20), over draws also the mutual information of outcome and weights.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fedep/data/dataset.h"
#include "fedep/model/model.h"
#include "fedep/sim/score/predictive.h"

namespace fedep {

// Examples that are unlike those of training, on purpose.
struct UnlikeSet {
  std::string name = {};  // for people
  std::vector<Batch> batches = {};
  std::vector<std::string> clients = {};  // whose each example is; empty: nobody's that is known
};

// The held-out examples of classes that a data set was left without; none: nothing was held out of them.
std::optional<UnlikeSet> unseen_classes_of(const Dataset& data);

// Of each example of a batch, at these weights. Of several classes alone.
std::vector<double> energies(Model& model, std::span<const float> theta, const Batch& batch);

struct Detection {
  double auroc = 0;
  double deviation = 0;  // its standard error (DeLong+88)
};

struct Detections {
  Detection max_probability = {}, entropy = {};
  std::optional<Detection> energy = {};              // at the point, of several classes
  std::optional<Detection> mutual_information = {};  // over draws
};

struct DetectionReport {
  std::string unlike = {};
  std::size_t examples = 0, unlike_examples = 0;
  Detections point = {};
  std::optional<Detections> marginal = {};
};

// Remembers every score of a set's examples.
class UnlikenessScores {
 public:
  explicit UnlikenessScores(Model& model) : model_(model) {}

  void add_point(const Predictions& predictions, std::span<const float> theta, const Batch& batch);
  // Predictions with DrawSettings::entropy.
  void add_marginal(const Predictions& predictions, const Batch& batch);

 private:
  struct Columns {
    std::vector<double> max_probability = {}, entropy = {}, energy = {}, mutual_information = {};
  };

  void add(const Predictions& predictions, std::size_t examples, Columns& to) const;
  static Detections compare(const Columns& like, const Columns& unlike);

  Model& model_;
  Columns point_, marginal_;

  friend DetectionReport detection_of(const UnlikenessScores& like, const UnlikenessScores& unlike,
                                      std::string name);
};

DetectionReport detection_of(const UnlikenessScores& like, const UnlikenessScores& unlike,
                             std::string name = {});

}  // namespace fedep
