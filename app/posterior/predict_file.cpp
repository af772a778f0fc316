#include "app/posterior/predict_file.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/posterior/saved_posterior.h"
#include "fedep/data/table/table_features.h"
#include "fedep/message/error.h"
#include "fedep/message/nearest.h"
#include "fedep/metric/counts.h"
#include "fedep/metric/normal_interval.h"
#include "fedep/sim/rows/own_intercept_file.h"
#include "fedep/sim/score/event_risk.h"
#include "fedep/sim/score/predictive.h"
#include "fedep/store/curvature_file.h"

namespace fedep {
namespace {

namespace fs = std::filesystem;

// A number's or a count's own interval: what is not known of its mean, and its noise.
void append_outcome(double mean, double spread, double variance, PredictedRows& rows) {
  const double part = (1 - rows.level) / 2;
  if (rows.target == TargetKind::count) {
    rows.outcome_low.push_back(count_quantile(part, mean, spread));
    rows.outcome_high.push_back(count_quantile(1 - part, mean, spread));
    return;
  }
  const double half = deviations_of(rows.level) * std::sqrt(variance);
  rows.outcome_low.push_back(mean - half);
  rows.outcome_high.push_back(mean + half);
}

// One batch's predictions at the end of the rows.
void append(const Predictions& predictions, const Model& model, const Likelihood& likelihood,
            bool posterior, PredictedRows& rows) {
  const std::size_t outputs = model.outputs();
  // A number's variance has a part that is not told, and the rest would be read as all of it.
  const bool bare = !rows.withheld.empty() && rows.has_deviation();
  rows.low.insert(rows.low.end(), predictions.low.begin(), predictions.low.end());
  rows.high.insert(rows.high.end(), predictions.high.begin(), predictions.high.end());
  for (std::size_t i = 0; i < predictions.entropy.size(); ++i) {
    const auto mean = std::span(predictions.mean).subspan(i * outputs, outputs);
    const double spread = predictions.spread.empty() ? 0.0 : predictions.spread[i];
    const double variance = likelihood.variance_at(mean[0]) + spread;
    const double entropy = bare ? NAN : predictive_entropy(rows.target, mean, variance);
    rows.entropy.push_back(entropy);
    if (posterior) {
      rows.mutual_information.push_back(
          bare ? NAN : mutual_information(rows.target, predictions, i, outputs, variance));
    }
    if (rows.target == TargetKind::binary) rows.values.push_back(1 - mean[0]);
    rows.values.insert(rows.values.end(), mean.begin(), mean.end());
    if (!rows.has_deviation()) continue;
    rows.values.push_back(bare ? NAN : std::sqrt(variance));
    if (!predictions.low.empty()) append_outcome(mean[0], spread, variance, rows);
  }
}

std::vector<std::string> names_of(const DatasetInfo& info, TargetKind predicted) {
  if (predicted == TargetKind::real || predicted == TargetKind::count) return {"mean", "deviation"};
  if (predicted == TargetKind::binary) return {"no", "yes"};
  std::vector<std::string> names = info.output_names;
  for (std::size_t c = names.size(); c < info.outputs; ++c) names.push_back(std::to_string(c));
  return names;
}

// Which of the table's values p_yes is the probability of.
std::string meaning_of_yes(const TableSpec& spec) {
  std::vector<std::string> values;
  for (const std::string& value : spec.positive) values.push_back(shown(value));
  const std::string meaning =
      fmt::format("yes means that {} is {}", shown(spec.label_column), fmt::join(values, " or "));
  if (!spec.is_time_to_event()) return meaning;
  return fmt::format("{} by {}, of a row that is free of it at {}", meaning,
                     shown(spec.stop_column),
                     spec.start_column.empty() ? "0" : shown(spec.start_column));
}

// Of spells their risk of the event is predicted.
std::unique_ptr<Model> predicting_model(const SavedPosterior& saved, const DatasetInfo& info) {
  std::unique_ptr<Model> model = model_of(saved, info);
  if (!info.table || !info.table->spec.is_time_to_event()) return model;
  if (saved.recipe.model.site_intercept) {
    throw InputError(
        "predict: model.site_intercept must be false where the outcome is a time to event, whose "
        "risks by a hospital's own intercept are not told yet");
  }
  return event_risk(std::move(model));
}

// Draws that are averaged where nobody asked for a number: enough for an interval, unless weights are many.
int default_draws(const SavedPosterior& saved, double level) {
  const std::size_t most_weights = saved.state.global.full() ? 300 : 100'000;
  const int recipe = draws_to_average(saved, {});
  if (saved.state.global.size() > most_weights) return recipe;
  return std::max(recipe, draws_for_interval(level));
}

// Where clients fitted a temperature to the average and none to draws around it, the average alone is at
// a temperature. A posterior is predicted by draws all the same: its intervals are.
bool is_at_average_alone(const SavedPosterior& saved, const PredictOptions& how) {
  const Temperatures& fitted = saved.state.temperatures;
  return how.average && how.temperature && fitted.average > 0 && fitted.average_marginal == 0;
}

// What temperature predictions are at, where clients fitted some.
std::string temperature_note(const SavedPosterior& saved, const PredictOptions& how, bool draws,
                             bool asked) {
  const Temperatures& fitted = saved.state.temperatures;
  if (!how.temperature || fitted.of(how.average, false) == 0) return {};
  const double temperature = fitted.of(how.average, draws);
  if (temperature == 0) {
    return fmt::format(
        "probabilities are at no temperature: {}; --samples 0 predicts at the {}, with its own",
        no_temperature_of_draws(saved, how.average), how.average ? "average" : "mean");
  }
  if (temperature == 1) {
    return "probabilities are the model's own: clients' calibration rows cannot tell a temperature "
           "from 1";
  }
  std::string text = fmt::format(
      "probabilities are those at temperature {:.4g}, which clients fitted after round {}; "
      "--no-temperature: as the model has them",
      temperature, fitted.round);
  if (draws) {
    text += "; entropy is theirs, mutual_information of predictions before it and no part of that";
  }
  if (!draws && !asked && is_at_average_alone(saved, how)) {
    text +=
        "; draws around the average have no temperature: " + no_temperature_of_draws(saved, true);
  }
  return text;
}

// Why draws, of which there are so many, make no interval of this level; empty: they do.
std::string too_few_draws(int samples, double level) {
  const double needed = 2 / (1 - level);  // one beyond each end
  if (double(samples) >= needed - 1e-9) return {};
  return fmt::format("{} draws cannot tell the ends of a {:.4g} % interval: --samples {} can",
                     samples, 100 * level, draws_for_interval(level));
}

// Why there are no intervals, besides what is withheld.
std::string why_no_interval(const SavedPosterior& saved, const PredictOptions& how, int samples) {
  if (!saved.withheld.empty()) return saved.withheld;
  if (how.average) return "an average's spread says how far rounds scattered, and is no posterior";
  if (!saved.posterior) return fmt::format("{} has no posterior", saved.algorithm);
  if (samples == 0) return "the mean alone (--samples 0) has none";
  return too_few_draws(samples, how.level);
}

PredictedRows without_predictions(const SavedPosterior& saved, const PredictInputs& in,
                                  TargetKind predicted) {
  PredictedRows rows{.target = predicted, .outputs = names_of(in.info, predicted)};
  rows.numbers = in.numbers;
  rows.ids = in.ids;
  rows.unlike = in.unlike;
  rows.left_out = in.left_out;
  rows.left_out_count = in.left_out_count;
  rows.withheld = saved.withheld;
  rows.verdict = saved.verdict;
  rows.notes = in.notes;
  for (const std::string& note : {unfinished(saved), curvature_note(saved), distrust(saved)}) {
    if (!note.empty()) rows.notes.push_back(note);
  }
  return rows;
}

// What hospitals keep of their own intercepts beside the checkpoint.
OwnIntercepts kept_intercepts(const SavedPosterior& saved, const PredictInputs& in) {
  if (!saved.recipe.model.site_intercept || in.clients.empty()) return {};
  return read_own_intercepts(saved.file.parent_path(), seal_of(saved.file),
                             in.info.feature_count());
}

// Whose rows are predicted by intercepts of their own, and whose are not.
std::string intercept_note(const SavedPosterior& saved, const PredictInputs& in,
                           const OwnIntercepts& own) {
  if (!saved.recipe.model.site_intercept) return {};
  constexpr std::string_view kUnknown =
      "predicted as of a hospital that nobody knows, averaged over how much hospitals differ";
  if (in.clients.empty()) {
    return fmt::format("rows do not say whose they are (column {}): all are {}",
                       shown(in.info.table ? in.info.table->spec.client_column : ""), kUnknown);
  }
  if (own.all().empty()) {
    return fmt::format(
        "hospitals' own intercepts are not beside the checkpoint (intercepts/), so "
        "that all rows are {}; fedep run --resume writes them",
        kUnknown);
  }
  std::size_t unknown = 0;
  std::string first;
  for (const std::string& client : in.clients) {
    if (!own.knows(client) && unknown++ == 0) first = client;
  }
  if (unknown == 0) return {};
  return fmt::format("{} of {} rows are of hospitals that took no part, first {}: {}", unknown,
                     in.clients.size(), shown(first), kUnknown);
}

InterceptAt intercepts_of(const PredictInputs& in, const OwnIntercepts& own) {
  if (in.clients.empty()) return {};
  return [&in, &own](std::size_t batch, std::size_t row) -> const OwnIntercept& {
    return own.of(in.clients[batch * kPredictChunk + row]);
  };
}

// What draws say, and what is to be said of them.
void predict_by_draws(const SavedPosterior& saved, const PredictInputs& in, const Model& model,
                      Predictive& predictive, const PredictOptions& how, const DrawSettings& draws,
                      const OwnIntercepts& own, PredictedRows& rows) {
  if (saved.curvature && !how.average) {
    rows.notes.emplace_back("draws are from the posterior of a last round of curvature");
  }
  DrawSettings with_intervals = draws;
  if (rows.no_interval.empty()) with_intervals.level = rows.level;
  predictive.marginal(
      with_intervals, in.batches.size(),
      [&](std::size_t i) -> const Batch& { return in.batches[i]; },
      [&, likelihood = average_likelihood(model, saved.state.global)](std::size_t,
                                                                      const Predictions& p) {
        append(p, model, likelihood, rows.samples > 1, rows);
      },
      intercepts_of(in, own));
  if (const std::string note = start_note(saved); !note.empty()) rows.notes.push_back(note);
  if (rows.samples == 1) {
    rows.notes.emplace_back("one draw has no spread: what is not known of the weights is not told");
  } else if (!rows.no_interval.empty()) {
    rows.notes.push_back("there are no intervals: " + rows.no_interval);
  } else if (rows.samples < draws_for_interval(rows.level)) {
    rows.notes.push_back(fmt::format(
        "intervals are coarse: {:.2g} of {} draws lie beyond each end; --samples {} makes it 12",
        (1 - rows.level) / 2 * rows.samples, rows.samples, draws_for_interval(rows.level)));
  }
}

}  // namespace

int draws_for_interval(double level) { return int(std::ceil(25 / (1 - level) - 1e-9)); }

PredictedRows predict_file(const fs::path& run_or_checkpoint, const fs::path& file,
                           const fs::path& data_folder, std::optional<int> asked,
                           const PredictOptions& how) {
  const SavedPosterior saved = read_posterior(run_or_checkpoint);
  if (how.average) check_average(saved);
  const PredictInputs in = read_inputs(saved, file, data_folder, how.id_column);
  const std::unique_ptr<Model> model = predicting_model(saved, in.info);
  PredictedRows rows = without_predictions(saved, in, model->target());
  rows.level = how.level;
  const int samples =
      asked.value_or(is_at_average_alone(saved, how) ? 0 : default_draws(saved, how.level));
  rows.no_interval = why_no_interval(saved, how, samples);
  const OwnIntercepts own = kept_intercepts(saved, in);
  if (std::string note = intercept_note(saved, in, own); !note.empty()) {
    rows.notes.push_back(std::move(note));
  }
  Predictive predictive(*model, saved.state, {how.average, how.temperature});
  // A deviation is read as an interval, and how far rounds scatter around their average is none.
  const bool spread = how.average ? can_draw_around_average(saved) && !rows.has_deviation() &&
                                        saved.withheld.empty()
                                  : saved.posterior;
  const bool posterior = spread && samples > 0;
  if (std::string note = temperature_note(saved, how, posterior, asked.has_value());
      !note.empty()) {
    rows.notes.push_back(std::move(note));
  }
  if (std::string note = few_draws_note(saved, how.average, samples);
      posterior && how.temperature && !note.empty()) {
    rows.notes.push_back(std::move(note));
  }
  const DrawSettings draws{
      .seed = saved.recipe.seed, .round = saved.state.round, .samples = samples, .entropy = true};
  if (posterior) {
    rows.samples = samples;
    predict_by_draws(saved, in, *model, predictive, how, draws, own, rows);
  } else {
    if (samples > 0 && how.average && rows.has_deviation() && saved.withheld.empty()) {
      rows.notes.emplace_back(
          "an average has no posterior: deviations are the outcome's noise alone");
    } else if (samples > 0 || !saved.withheld.empty()) {
      rows.notes.push_back(no_draws(saved, "predictions", how.average));
    }
    const Likelihood likelihood = likelihood_at(*model, predictive.weights().span());
    const InterceptAt intercept_at = intercepts_of(in, own);
    for (std::size_t i = 0; i < in.batches.size(); ++i) {
      append(predictive.point(in.batches[i], intercept_at, i), *model, likelihood, false, rows);
    }
  }
  if (rows.target == TargetKind::binary && in.info.table) {
    rows.notes.push_back(meaning_of_yes(in.info.table->spec));
  }
  // One draw does not disagree with itself.
  const bool disagree = posterior && samples > 1;
  rows.outliers =
      outlier_scores(in, *model, predictive, disagree ? std::optional(draws) : std::nullopt,
                     rows.mutual_information);
  if (!in.info.table && std::isnan(rows.outliers.threshold)) {
    rows.notes.emplace_back("nothing is held out to compare with: no image is called unlike");
  }
  return rows;
}

}  // namespace fedep
