// What a posterior says about new rows or images, and how sure it is.
//
//   const PredictedRows rows = predict_file("run/hospitals", "new.csv", data_folder);
//   fmt::print("{}", predictions_csv(rows));               // prediction_formats.h
//
// Per example: probabilities averaged over draws of the weights, and the interval that the middle part
// (`level`) of the draws lies in; the entropy of the average; of it the mutual information between outcome
// and weights, which more training data would remove; and whether the input is unlike those the posterior
// was trained on. A number or count has an interval of its mean, and one of the outcome, which has its noise too.
//
// Unlike: its outlier score (outlier_scores.h) exceeds what nearly all held-out examples have, though up to one in twenty
// inputs of the training distribution does so too; or a column is unlike by itself (data/table/unlike_rows.h).
//
// A table's rows are prepared by features.json, which a run keeps beside its checkpoints; without it,
// and for images, the recipe's data set is opened.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "app/posterior/outlier_scores.h"
#include "app/posterior/predict_inputs.h"
#include "fedep/data/batch.h"
#include "fedep/store/verdict.h"

namespace fedep {

struct PredictedRows {
  TargetKind target = TargetKind::label;
  std::vector<std::string> outputs = {};  // names of classes or tags; of binary: no and yes
  std::vector<std::size_t> numbers = {};  // [rows], as in the file, from 1
  std::vector<std::string> ids = {};      // [rows]; empty: there is no column of them
  // [rows, outputs]; real targets: mean and standard deviation of the outcome, NaN where it is withheld
  std::vector<double> values = {};
  double level = 0.95;
  // [rows, k]: of p_yes or of a mean (k = 1), of each class or tag. Empty where there are none,
  std::vector<double> low = {}, high = {};
  std::string no_interval = {};  // and why
  // [rows]: of a number or a count itself; as empty
  std::vector<double> outcome_low = {}, outcome_high = {};
  std::vector<double> entropy = {};              // [rows], in nats
  std::vector<double> mutual_information = {};   // [rows], in nats; empty with fewer than two draws
  OutlierScores outliers = {};                   // [rows]
  std::vector<std::vector<Unlike>> unlike = {};  // [rows] of a table
  std::vector<LeftOutRow> left_out = {};         // rows that are not here
  std::size_t left_out_count = 0;                // of which the first ones are named
  int samples = 0;                               // draws averaged; 0: predictions of the estimate
  std::string withheld = {};            // why nothing is told of what is not known of weights
  std::vector<std::string> notes = {};  // what a reader should know, a line each
  Verdict verdict = {};                 // on the run

  std::size_t size() const { return entropy.size(); }
  bool outlier(std::size_t row) const {
    return outliers.is_beyond(row) || (!unlike.empty() && !unlike[row].empty());
  }
  // Numbers and counts are predicted by mean and deviation, all others by probabilities.
  bool has_deviation() const { return target == TargetKind::real || target == TargetKind::count; }
};

struct PredictOptions {
  bool average = false;        // the server's average and draws around it, in place of q
  bool temperature = true;     // where clients fitted one
  double level = 0.95;         // of intervals, between 0 and 1
  std::string id_column = {};  // empty: the recipe's
};

// Draws that an interval of this level takes: 12.5 beyond each of its ends.
int draws_for_interval(double level);

// `samples` draws, else the recipe's evaluate.samples or, where weights are few enough for it,
// draws_for_interval() if that is more; with an algorithm that estimates a point, or 0: at the estimate.
// With an average that alone has a temperature: at the average.
PredictedRows predict_file(const std::filesystem::path& run_or_checkpoint,
                           const std::filesystem::path& file,
                           const std::filesystem::path& data_folder,
                           std::optional<int> samples = {}, const PredictOptions& how = {});

}  // namespace fedep
