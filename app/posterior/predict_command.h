// `fedep predict RUN|CHECKPOINT --data FILE`: what a posterior says about new rows or images, and how
// sure it is.
//
//   const PredictedRows rows = predict_file("run/hospitals", "new.csv", data_folder);
//   fmt::print("{}", predictions_csv(rows));
//
// Per example: probabilities averaged over draws of the weights; the entropy of that average; of it
// the mutual information between outcome and weights, which more training data would remove; and
// whether the input is unlike those the posterior was trained on.
//
// Unlike: its outlier score exceeds what 95 % of the held-out examples have, so one in twenty inputs
// of the training distribution is flagged too. So is a row with another number in a column that had
// one value in training, which predictions do not read. The score of a table's row is the mean
// square of its scaled columns; that of an image is its energy −log Σ_c exp(logit_c) at the
// posterior's mean (Liu+20).
//
// A table's rows are prepared by features.json, which a run keeps beside its checkpoints; without it,
// and for images, the recipe's data set is opened.
#pragma once

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "app/command.h"
#include "fedep/data/batch.h"
#include "fedep/store/verdict.h"

namespace fedep {

struct PredictedRows {
  TargetKind target = TargetKind::label;
  std::vector<std::string> outputs;  // names of classes or tags; of binary: no and yes
  // [rows, outputs]; real targets: mean and standard deviation of the outcome, NaN where it is withheld
  std::vector<double> values;
  std::vector<double> entropy;                  // [rows], in nats
  std::vector<double> mutual_information;       // [rows], in nats; empty with fewer than two draws
  std::vector<double> outlier_score;            // [rows]
  double threshold = 0;                         // of the score
  std::vector<std::size_t> off_constants = {};  // rows with a value that training could not teach
  int samples = 0;                              // draws averaged; 0: predictions of the estimate
  std::string withheld = {};            // why nothing is told of what is not known of weights
  std::vector<std::string> notes = {};  // what a reader should know, a line each
  Verdict verdict = {};                 // on the run

  std::size_t size() const { return entropy.size(); }
  bool outlier(std::size_t row) const {
    return outlier_score[row] > threshold || std::ranges::binary_search(off_constants, row);
  }
};

struct PredictOptions {
  bool average = false;     // the server's average and draws around it, in place of q
  bool temperature = true;  // where clients fitted one
};

// `samples` draws, or draws_to_average() of the run; with an algorithm that estimates a point, or 0:
// at the estimate.
PredictedRows predict_file(const std::filesystem::path& run_or_checkpoint,
                           const std::filesystem::path& file,
                           const std::filesystem::path& data_folder,
                           std::optional<int> samples = {}, const PredictOptions& how = {});

// Columns row (from 1), p_<class> of each class, prediction, entropy, mutual_information,
// outlier_score, out_of_distribution (0 or 1). Binary targets have the classes no and yes, whatever
// their values are called. Real targets: mean, deviation in place of probabilities and prediction.
std::string predictions_csv(const PredictedRows& rows);
// The same, a line of JSON per example; probabilities are an object by class. What is withheld is null,
// empty in CSV, and each line says why.
std::string predictions_jsonl(const PredictedRows& rows);

void add_predict_command(Command& app, int& exit_code);

}  // namespace fedep
