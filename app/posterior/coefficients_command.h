// `fedep coefficients RUN|CHECKPOINT`: what a linear model on a table has learned, one line per
// column: posterior mean, standard deviation and 95 % interval.
//
//   const CoefficientTable table = read_coefficients("run/heart_disease/ep", data_folder);
//   fmt::print("{}", coefficients_text(table));
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/command.h"
#include "fedep/message/gaussian.h"
#include "fedep/model/likelihood.h"
#include "fedep/store/verdict.h"

namespace fedep {

struct Coefficient {
  std::string name;
  double mean = 0;
  std::optional<double> deviation = {};  // none: a point estimate, or withheld
  // The part of its precision that is still alpha from the phase's beginning; none: there is none.
  std::optional<double> start_share = {};

  double low() const;  // of the interval that holds 95 % of the posterior
  double high() const;
  bool operator==(const Coefficient&) const = default;
};

struct CoefficientTable {
  std::string data;
  std::string algorithm;
  std::int64_t round = 0;
  Likelihood likelihood = TargetKind::binary;
  std::vector<Coefficient> rows = {};  // columns that vary, in their order, then the intercept
  bool scaled = true;                  // columns were centred and scaled
  bool full = false;                   // deviations are those of a full covariance matrix
  std::optional<double> curvature =
      {};                     // which a last round gave: the mean's distance from the mode
  std::string withheld = {};  // why there are no deviations, though the algorithm infers them
  std::vector<std::string> notes = {};
  Verdict verdict = {};  // on the run; where it is not to be trusted there are no deviations
};

// Of a run's latest checkpoint, or of this one. Columns' names are those that the run wrote down.
// Throws InputError if the model is not linear with one output on a table.
CoefficientTable read_coefficients(const std::filesystem::path& run_or_checkpoint,
                                   const std::filesystem::path& data_folder);

std::string coefficients_text(const CoefficientTable& table);
std::string coefficients_json(const CoefficientTable& table);

void add_coefficients_command(Command& app, int& exit_code);

}  // namespace fedep
