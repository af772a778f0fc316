// What a linear model on a table has learned, as a clinician reads it: one row per term, in the columns' own units
// (a number's unit, a level against its reference) and per standard deviation.
//
//   const CoefficientTable table = read_coefficients("run/heart_disease/ep", data_folder, {.level = 0.9});
//   const Effect effect = effect_of(table, table.rows[0], EffectUnit::own);
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "app/posterior/coefficients/information_shares.h"
#include "fedep/data/table/term.h"
#include "fedep/model/likelihood.h"
#include "fedep/page/figure/effect_text.h"
#include "fedep/store/verdict.h"

namespace fedep {

struct CoefficientOptions {
  double level = 0.95;                      // of intervals
  std::vector<std::string> per = {};        // "age=10": by ten years
  std::vector<std::string> contrasts = {};  // "unit=icu,hdu": of two levels
  std::string reference = {};  // several classes: what others are compared with; empty: the first
  bool shares = false;         // of every coefficient, not only overall
};

// What is compared, and so what e to the power of a coefficient is.
enum class EffectKind { odds, rate, hazard, difference };

enum class RowKind {
  effect,
  contrast,   // of two levels that are no references
  intercept,  // of a row with every column at its mean
  spread,     // the logarithm of a standard deviation, behind the weights
};

struct Coefficient {
  std::string name;
  double mean = 0;                       // for one standard deviation of the column
  std::optional<double> deviation = {};  // none: a point estimate, or withheld
  std::optional<double> start_share =
      {};  // part of its precision that is still alpha; none: there is none
  RowKind kind = RowKind::effect;
  Term term = {};
  std::string of_class = {};  // against CoefficientTable::reference; empty: there are no classes
  // `mean` times these is the effect for one unit, or `per` units, of the column, and what a forest plot shows:
  // numbers by their standard deviation unless `per` says more, 0/1 columns as 1 against 0.
  double unit = 1, figure_unit = 1;
  double per = 1;
  std::string figure_name = {};
  std::vector<double> shares =
      {};  // of the information, by CoefficientTable::share_names; or empty

  bool operator==(const Coefficient&) const = default;
};

struct CoefficientTable {
  std::string data;
  std::string algorithm;
  std::int64_t round = 0;
  Likelihood likelihood = TargetKind::binary;
  // Columns that vary, in their order, then the intercept, spreads and contrasts; class by class.
  std::vector<Coefficient> rows = {};
  bool scaled = true;  // columns were centred and scaled
  bool full = false;   // deviations are those of a full covariance matrix
  std::optional<double> curvature =
      {};                     // which a last round gave: the mean's distance from the mode
  std::string withheld = {};  // why there are no deviations, though the algorithm infers them
  std::vector<std::string> notes = {};
  Verdict verdict = {};  // on the run; where it is not to be trusted there are no deviations
  EffectKind effect = EffectKind::odds;
  std::string outcome = {};    // "died = yes"; empty: not known
  std::string reference = {};  // several classes: what each is compared with
  double level = 0.95;
  bool has_exposure = false;  // of counts
  // Of the information: the prior and each client. Empty: shares_note says why.
  std::vector<std::string> share_names = {};
  std::vector<double> shares = {};
  std::string shares_note = {};

  bool has_intervals() const { return !rows.empty() && rows[0].deviation.has_value(); }
};

// Of a run's latest checkpoint, or of this one. Columns' names are those that the run wrote down.
// Throws InputError if the model is not linear on a table, and for options that do not fit.
CoefficientTable read_coefficients(const std::filesystem::path& run_or_checkpoint,
                                   const std::filesystem::path& data_folder,
                                   const CoefficientOptions& options = {});

enum class EffectUnit {
  standardised,  // one standard deviation of every column
  own,           // one unit, or `per`; a level against its reference
  figure,        // numbers per standard deviation, or `per`; a level against its reference
};

struct Effect {
  double estimate = 0;
  std::optional<Bounds> interval = {};
};
Effect effect_of(const CoefficientTable& table, const Coefficient& row, EffectUnit unit);
// e to the power of all of it: a ratio, or a spread.
Effect exponential(const Effect& effect);

// "odds ratio", or nothing of differences; "log-odds", what a coefficient changes.
std::string ratio_name(const CoefficientTable& table);
std::string change_name(const CoefficientTable& table);
// "95 %".
std::string level_text(double level);

}  // namespace fedep
