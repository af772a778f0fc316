#include "app/posterior/coefficients/coefficient_table.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <Eigen/Cholesky>

#include "app/posterior/coefficients/term_units.h"
#include "app/posterior/saved_posterior.h"
#include "app/posterior/stateless_note.h"
#include "app/reproduce/table_metrics.h"
#include "app/trust.h"
#include "fedep/data/registry.h"
#include "fedep/data/table/table_features.h"
#include "fedep/message/dense_gaussian.h"
#include "fedep/message/error.h"
#include "fedep/message/nearest.h"
#include "fedep/metric/normal_interval.h"
#include "fedep/model/registry.h"

namespace fedep {
namespace {

void check_linear(const Recipe& recipe, const DatasetInfo& data) {
  if (!find_model(recipe.model.name).is_linear) {
    throw InputError(
        fmt::format("coefficients: model must be linear, but is {}", recipe.model.name));
  }
  if (data.feature_names.empty() || data.target == TargetKind::tags) {
    throw InputError(fmt::format(
        "coefficients: data must be a table, whose columns have names, but are {}", data.name));
  }
}

std::vector<std::string> notes_of(const SavedPosterior& saved) {
  std::vector<std::string> notes;
  const std::string unplayed = unfinished(saved);
  if (!unplayed.empty()) notes.push_back(unplayed);
  const std::string trust = unplayed.empty() ? trust_text(saved.verdict) : distrust(saved);
  if (!trust.empty()) notes.push_back(trust);
  if (saved.verdict.trust == Trust::none) return notes;
  if (const std::string note = curvature_note(saved); !note.empty()) notes.push_back(note);
  if (const std::string note = start_note(saved); !note.empty()) notes.push_back(note);
  const std::filesystem::path log = saved.file.parent_path() / "log.jsonl";
  std::error_code ignored;
  if (!std::filesystem::exists(log, ignored)) return notes;
  const History history = read_history(log);
  const std::string refusals = refusals_text(summary_of(history));
  if (!refusals.empty()) notes.push_back(refusals + ": docs/stability.md");
  if (history.header) {
    const std::string note = stateless_note(saved, history.header->clients);
    if (!note.empty()) notes.push_back(note);
  }
  return notes;
}

// q's mean and, where they are told, variances of what is linear in the weights.
class Moments {
 public:
  explicit Moments(const SavedPosterior& saved) : mean_(point_estimate(saved.state)) {
    if (!saved.posterior) return;
    const Message& q = saved.state.global;
    if (q.full()) {
      const Eigen::MatrixXd lambda = in_double(q).lambda;
      covariance_ = lambda.llt().solve(Eigen::MatrixXd::Identity(lambda.rows(), lambda.cols()));
    } else {
      for (const float precision : q.lambda_full()) variances_.push_back(1 / double(precision));
    }
  }

  bool is_known() const { return covariance_.size() > 0 || !variances_.empty(); }
  bool knows_correlations() const { return covariance_.size() > 0; }

  double mean(const Combination& of) const {
    double sum = 0;
    for (const auto& [index, weight] : of) sum += weight * double(mean_[index]);
    return sum;
  }
  std::optional<double> deviation(const Combination& of) const {
    if (!is_known()) return std::nullopt;
    double sum = 0;
    for (const auto& [i, a] : of) {
      for (const auto& [j, b] : of) {
        if (knows_correlations()) {
          sum += a * b * covariance_(Eigen::Index(i), Eigen::Index(j));
        } else if (i == j) {
          sum += a * b * variances_[i];
        }
      }
    }
    return std::sqrt(sum);
  }

 private:
  HostVector<float> mean_;
  std::vector<double> variances_;
  Eigen::MatrixXd covariance_;
};

// A term for every feature, also where nobody wrote down how the table was prepared.
std::vector<Term> terms_for(const DatasetInfo& info, const TableFeatures* table) {
  if (table != nullptr) return terms_of(*table);
  std::vector<Term> out;
  for (const std::string& name : info.feature_names) out.push_back({.name = name, .column = name});
  return out;
}

EffectKind effect_kind(const TableFeatures* table, TargetKind target) {
  if (table != nullptr && table->spec.is_time_to_event()) return EffectKind::hazard;
  if (target == TargetKind::real) return EffectKind::difference;
  return target == TargetKind::count ? EffectKind::rate : EffectKind::odds;
}

std::string outcome_of(const TableFeatures* table) {
  if (table == nullptr) return {};
  const TableSpec& spec = table->spec;
  if (spec.target != TargetKind::binary || spec.positive == std::vector<std::string>{"1"}) {
    return spec.label_column;
  }
  return fmt::format("{} = {}", spec.label_column, fmt::join(spec.positive, " or "));
}

std::string class_name(const DatasetInfo& info, std::size_t output) {
  return output < info.output_names.size() ? info.output_names[output]
                                           : fmt::format("class {}", output);
}

std::size_t reference_class(const DatasetInfo& info, const std::string& asked) {
  if (asked.empty()) return 0;
  if (info.target != TargetKind::label) {
    throw InputError("--reference is for outcomes of several classes, but there is one outcome");
  }
  std::vector<std::string> names;
  for (std::size_t c = 0; c < info.outputs; ++c) names.push_back(class_name(info, c));
  const auto found = std::ranges::find(names, asked);
  if (found == names.end()) {
    throw InputError(fmt::format("--reference must be a class of the outcome ({}), but is {}",
                                 shown_list(names, 20), shown(asked)));
  }
  return std::size_t(found - names.begin());
}

// Makes rows of what is linear in the weights, and remembers what they are.
class RowMaker {
 public:
  RowMaker(const SavedPosterior& saved, const DatasetInfo& info, CoefficientTable& table)
      : moments_(saved),
        starts_(start_shares(saved)),
        features_(info.feature_names.size()),
        outputs_(info.outputs),
        table_(table) {}

  // In units of the features, of one output or of the difference between two.
  void compare(std::size_t output, std::size_t reference) {
    output_ = output;
    reference_ = reference;
  }

  Coefficient& add(const std::string& name, Combination of) {
    Coefficient& row = table_.rows.emplace_back(name, moments_.mean(of));
    row.deviation = moments_.deviation(of);
    if (!starts_.empty() && of.size() == 1)
      row.start_share = starts_[starts_.size() == 1 ? 0 : of[0].first];
    combinations_.push_back(std::move(of));
    return row;
  }

  // `times` the coefficient of a feature; the intercepts are behind the last one.
  Combination feature(std::size_t index, double times = 1) const {
    Combination out{{index * outputs_ + output_, times}};
    if (reference_ != output_) out.emplace_back(index * outputs_ + reference_, -times);
    return out;
  }
  std::size_t intercept() const { return features_; }
  std::size_t behind_weights() const { return (features_ + 1) * outputs_; }
  const Moments& moments() const { return moments_; }
  const std::vector<Combination>& combinations() const { return combinations_; }

 private:
  Moments moments_;
  std::vector<double> starts_;
  std::size_t features_, outputs_, output_ = 0, reference_ = 0;
  CoefficientTable& table_;
  std::vector<Combination> combinations_;
};

void add_contrast(const std::string& text, std::span<const Term> terms, RowMaker& rows) {
  const LevelPair pair = parse_contrast(text, terms);
  const bool needs_covariance = pair.first_term != nullptr && pair.second_term != nullptr;
  if (needs_covariance && rows.moments().is_known() && !rows.moments().knows_correlations()) {
    throw InputError(fmt::format(
        "--contrast {}: two levels that are no reference need a full covariance matrix, but the "
        "posterior has variances alone (phase.inference.family, or phase.curvature = \"full\")",
        shown(text)));
  }
  Combination of;
  const auto append = [&](const Term* term, double sign) {
    if (term == nullptr) return;
    const auto index = std::size_t(term - terms.data());
    const Combination more = rows.feature(index, sign / term->divisor);
    of.insert(of.end(), more.begin(), more.end());
  };
  append(pair.first_term, 1);
  append(pair.second_term, -1);
  Coefficient& row =
      rows.add(fmt::format("{}={} vs {}", pair.column, pair.first, pair.second), std::move(of));
  row.kind = RowKind::contrast;
  row.start_share.reset();
  row.figure_name = row.name;
  row.term = {.kind = TermKind::category,
              .name = row.name,
              .column = pair.column,
              .level = pair.first,
              .reference = pair.second};
}

// Of one output, or of a class against the reference.
void add_rows(std::span<const Term> terms, const PerUnits& per, const CoefficientOptions& options,
              const std::string& of_class, RowMaker& rows, CoefficientTable& table) {
  const std::size_t first = table.rows.size();
  for (std::size_t j = 0; j < terms.size(); ++j) {
    if (!terms[j].varies) continue;
    Coefficient& row = rows.add(terms[j].name, rows.feature(j));
    const TermUnits units = units_of(terms[j], per, table.scaled);
    row.kind = terms[j].kind == TermKind::intercept ? RowKind::intercept : RowKind::effect;
    row.term = terms[j];
    row.unit = units.own;
    row.per = units.per;
    row.figure_unit = units.figure;
    row.figure_name = units.figure_name;
  }
  rows.add("intercept", rows.feature(rows.intercept())).kind = RowKind::intercept;
  for (const std::string& text : options.contrasts) add_contrast(text, terms, rows);
  for (std::size_t i = first; i < table.rows.size(); ++i) table.rows[i].of_class = of_class;
}

// What a model has beside its coefficients: logarithms of deviations.
void add_spreads(const Layout& layout, RowMaker& rows) {
  std::size_t index = 0;
  for (const TensorShape& tensor : layout) {
    if (index >= rows.behind_weights()) {
      rows.add(tensor.name, {{index, 1.0}}).kind = RowKind::spread;
    }
    index += tensor.size();
  }
}

void add_shares(const SavedPosterior& saved, bool by_row,
                const std::vector<Combination>& combinations, CoefficientTable& table) {
  const KeptShares kept = kept_shares(saved);
  table.shares_note = kept.why_not.empty() ? kept.note : kept.why_not;
  table.share_names = kept.shares.names();
  if (table.share_names.empty()) return;
  std::vector<Combination> single;  // contrasts tell nothing new
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    if (table.rows[i].kind != RowKind::contrast) single.push_back(combinations[i]);
  }
  table.shares = kept.shares.of_all(single);
  if (!by_row) return;
  const auto shares = kept.shares.of_each(combinations);
  for (std::size_t i = 0; i < table.rows.size(); ++i) table.rows[i].shares = shares[i];
}

}  // namespace

CoefficientTable read_coefficients(const std::filesystem::path& run_or_checkpoint,
                                   const std::filesystem::path& data_folder,
                                   const CoefficientOptions& options) {
  deviations_of(options.level);  // or it is refused
  const SavedPosterior saved = read_posterior(run_or_checkpoint);
  const Recipe& recipe = saved.recipe;
  const std::shared_ptr<const TableFeatures> kept = kept_features(saved);
  const DatasetInfo info = kept != nullptr
                               ? info_of(*kept)
                               : open_dataset(recipe.data, recipe.seed, data_folder)->info();
  check_linear(recipe, info);
  const auto model = model_of(saved, info);
  const TableFeatures* const features = kept != nullptr ? kept.get() : info.table.get();

  CoefficientTable out{
      .data = info.name,
      .algorithm = saved.algorithm,
      .round = saved.state.round,
      .likelihood = model->likelihood(),
      .scaled = recipe.data.scale != ColumnScaling::none,
      .full = saved.state.global.full(),
      .curvature = saved.curvature ? std::optional(saved.curvature->distance) : std::nullopt,
      .withheld = saved.withheld,
      .notes = notes_of(saved),
      .verdict = saved.verdict,
      .effect = effect_kind(features, info.target),
      .outcome = outcome_of(features),
      .level = options.level,
      .has_exposure = info.has_exposure};
  const std::vector<Term> terms = terms_for(info, features);
  const PerUnits per = parse_per(options.per, terms);
  RowMaker rows(saved, info, out);
  if (info.target == TargetKind::label) {
    const std::size_t reference = reference_class(info, options.reference);
    out.reference = class_name(info, reference);
    for (std::size_t c = 0; c < info.outputs; ++c) {
      if (c == reference) continue;
      rows.compare(c, reference);
      add_rows(terms, per, options, class_name(info, c), rows, out);
    }
  } else {
    reference_class(info, options.reference);
    add_rows(terms, per, options, "", rows, out);
  }
  add_spreads(saved.layout, rows);
  add_shares(saved, options.shares, rows.combinations(), out);
  const ConstantColumns constant =
      features != nullptr ? constant_columns(*features) : ConstantColumns{};
  if (!constant.names.empty()) {
    out.notes.push_back(fmt::format("columns that do not vary in training have no coefficient: {}",
                                    shown_list(constant.names, constant.names.size())));
  }
  return out;
}

Effect effect_of(const CoefficientTable& table, const Coefficient& row, EffectUnit unit) {
  const double times = unit == EffectUnit::own      ? row.unit
                       : unit == EffectUnit::figure ? row.figure_unit
                                                    : 1;
  Effect out{times * row.mean};
  if (!row.deviation) return out;
  const double half = deviations_of(table.level) * *row.deviation;
  out.interval = {times * (row.mean - half), times * (row.mean + half)};
  return out;
}

Effect exponential(const Effect& effect) {
  Effect out{std::exp(effect.estimate)};
  if (effect.interval) {
    out.interval = {std::exp(effect.interval->first), std::exp(effect.interval->second)};
  }
  return out;
}

std::string ratio_name(const CoefficientTable& table) {
  switch (table.effect) {
    case EffectKind::odds:
      return "odds ratio";
    case EffectKind::rate:
      return "rate ratio";
    case EffectKind::hazard:
      return "hazard ratio";
    case EffectKind::difference:
      return "";
  }
  return "";
}

std::string change_name(const CoefficientTable& table) {
  switch (table.effect) {
    case EffectKind::odds:
      return "log-odds";
    case EffectKind::rate:
      return "log of the mean count";
    case EffectKind::hazard:
      return "log hazard";
    case EffectKind::difference:
      return "outcome";
  }
  return "";
}

std::string level_text(double level) { return fmt::format("{:.10g} %", 100 * level); }

}  // namespace fedep
