// Predictions as files: CSV, and JSON a line per example.
//
// Columns row (from 1, as in the file), id where there is a column of them, p_<class> of each class, interval,
// prediction, entropy, mutual_information, outlier_score, energy of images of a posterior, out_of_distribution (0 or 1), unlike. Binary targets
// have the classes no and yes, whatever their values are called, and low and high of p_yes; several
// classes low_<class> and high_<class> where there are intervals. Numbers and counts: mean, deviation, low and high of
// the mean, outcome_low and outcome_high in place of probabilities and prediction. docs/files.md says the same to users.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "app/posterior/predict_file.h"

namespace fedep {

// What is withheld is empty.
std::string predictions_csv(const PredictedRows& rows);
// Probabilities and intervals are objects by class. What is withheld is null, and each line says why.
std::string predictions_jsonl(const PredictedRows& rows);
// Columns row, line, id, reason: those that have no prediction.
std::string left_out_csv(const PredictedRows& rows);

struct PredictionFormat {
  std::string_view name;
  std::string (*text)(const PredictedRows& rows);
};
inline constexpr std::array kPredictionFormats{PredictionFormat{"csv", predictions_csv},
                                               PredictionFormat{"jsonl", predictions_jsonl}};

}  // namespace fedep
