#include "app/posterior/predict_command.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "app/output.h"
#include "app/posterior/saved_posterior.h"
#include "app/run/run_recipe.h"
#include "app/trust.h"
#include "app/whole_number.h"
#include "fedep/data/append_batch.h"
#include "fedep/data/registry.h"
#include "fedep/data/table/table_features.h"
#include "fedep/message/error.h"
#include "fedep/message/table.h"
#include "fedep/sim/score/predictive.h"
#include "fedep/store/durable_file.h"
#include "fedep/store/json.h"

namespace fedep {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kChunk = 500;  // examples predicted at a time

// Everything prepared: the inputs, and what their outlier scores are measured by.
struct Inputs {
  DatasetInfo info;
  std::unique_ptr<Dataset> data;  // null where features.json was enough
  std::vector<Batch> batches;
  std::vector<std::string> notes;
  std::vector<std::size_t> off_constants;  // rows of a table
};

// Rows of a dense batch, a few at a time.
std::vector<Batch> in_chunks(const Batch& all, std::size_t width) {
  std::vector<Batch> out;
  for (std::size_t begin = 0; begin < all.size; begin += kChunk) {
    out.push_back(rows_of(all, begin, std::min(all.size, begin + kChunk), width));
  }
  return out;
}

Inputs read_inputs(const SavedPosterior& saved, const fs::path& file, const fs::path& data_folder) {
  Inputs in;
  std::shared_ptr<const TableFeatures> table = kept_features(saved);
  if (table != nullptr) {
    in.info = info_of(*table);
    in.info.table = table;
  } else {
    in.data = open_dataset(saved.recipe.data, saved.recipe.seed, data_folder);
    in.info = in.data->info();
    table = in.info.table;
  }
  Batch all;
  if (table) {
    const DelimitedTable rows = read_delimited(file, format_of(file));
    all = encode_table(rows, *table);
    const std::vector<std::size_t> lines = lines_with_new_categories(rows, *table);
    if (!lines.empty()) {
      in.notes.push_back(fmt::format(
          "{}:{}: {} of {} rows have a category that training did not; it stands at the mean",
          file.string(), lines.front(), lines.size(), all.size));
    }
    in.off_constants = rows_off_constants(rows, *table);
    if (!in.off_constants.empty()) {
      in.notes.push_back(fmt::format(
          "{}:{}: {} of {} rows have another value in a column that did not vary in training, and "
          "predictions do not read it",
          file.string(), rows.lines.at(in.off_constants.front()), in.off_constants.size(),
          all.size));
    }
  } else {
    all = read_images(file, in.info);
  }
  in.batches = in_chunks(all, in.info.feature_count());
  return in;
}

// −log Σ_c exp(logit_c) of each example.
void append_energies(Model& model, const HostVector<float>& theta, const Batch& batch,
                     std::vector<double>& out) {
  std::vector<float> logits(batch.size * model.outputs());
  model.logits(theta.span(), batch, {}, logits);
  for (std::size_t i = 0; i < batch.size; ++i) {
    const auto row = std::span(logits).subspan(i * model.outputs(), model.outputs());
    const double top = double(*std::max_element(row.begin(), row.end()));
    double sum = 0;
    for (const float logit : row) sum += std::exp(double(logit) - top);
    out.push_back(-top - std::log(sum));
  }
}

double energy_threshold(Model& model, const HostVector<float>& theta, const Dataset& data) {
  std::vector<double> energies;
  Batch batch;
  for (std::size_t begin = 0; begin < data.test_size(); begin += kChunk) {
    data.test_batch(begin, std::min(begin + kChunk, data.test_size()), batch);
    append_energies(model, theta, batch, energies);
  }
  return quantile(std::move(energies), 0.95);
}

void score_outliers(const Inputs& in, Model& model, const HostVector<float>& theta,
                    PredictedRows& out) {
  if (in.info.table) {
    out.threshold = in.info.table->far;
    const std::size_t width = in.info.feature_count();
    for (const Batch& batch : in.batches) {
      for (std::size_t i = 0; i < batch.size; ++i) {
        out.outlier_score.push_back(distance(std::span(batch.dense).subspan(i * width, width)));
      }
    }
    return;
  }
  out.threshold = energy_threshold(model, theta, *in.data);
  for (const Batch& batch : in.batches) append_energies(model, theta, batch, out.outlier_score);
}

// Numbers and counts are predicted by mean and deviation, all others by probabilities.
bool has_deviation(TargetKind target) {
  return target == TargetKind::real || target == TargetKind::count;
}

// One batch's predictions at the end of the rows.
void append(const Predictions& predictions, const Model& model, bool posterior,
            PredictedRows& rows) {
  const std::size_t outputs = model.outputs();
  for (std::size_t i = 0; i < predictions.entropy.size(); ++i) {
    const auto mean = std::span(predictions.mean).subspan(i * outputs, outputs);
    const double spread = predictions.spread.empty() ? 0.0 : predictions.spread[i];
    const double variance = model.likelihood().variance_at(mean[0]) + spread;
    // A number's variance has a part that is not told, and the rest would be read as all of it.
    const bool bare = !rows.withheld.empty() && has_deviation(rows.target);
    const double entropy = bare ? NAN : predictive_entropy(rows.target, mean, variance);
    rows.entropy.push_back(entropy);
    if (posterior) {
      // A temperature is of the mean alone: what draws disagree in is not.
      const double of_mean =
          predictions.entropy_before.empty() ? entropy : predictions.entropy_before[i];
      const double information = of_mean - predictions.entropy[i];
      rows.mutual_information.push_back(std::isnan(information) ? NAN : std::max(0.0, information));
    }
    if (rows.target == TargetKind::binary) rows.values.push_back(1 - mean[0]);
    rows.values.insert(rows.values.end(), mean.begin(), mean.end());
    if (has_deviation(rows.target)) rows.values.push_back(bare ? NAN : std::sqrt(variance));
  }
}

std::vector<std::string> names_of(const DatasetInfo& info) {
  if (has_deviation(info.target)) return {"mean", "deviation"};
  if (info.target == TargetKind::binary) return {"no", "yes"};
  std::vector<std::string> names = info.output_names;
  for (std::size_t c = names.size(); c < info.outputs; ++c) names.push_back(std::to_string(c));
  return names;
}

// Which of the table's values p_yes is the probability of.
std::string meaning_of_yes(const TableSpec& spec) {
  std::vector<std::string> values;
  for (const std::string& value : spec.positive) values.push_back(shown(value));
  return fmt::format("yes means that {} is {}", shown(spec.label_column),
                     fmt::join(values, " or "));
}

// The most probable class, or all tags that are more probable than not.
std::string prediction(const PredictedRows& rows, std::span<const double> values) {
  if (rows.target != TargetKind::tags) {
    const auto best = std::max_element(values.begin(), values.end());
    return rows.outputs[std::size_t(best - values.begin())];
  }
  std::vector<std::string> tags;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] > 0.5) tags.push_back(rows.outputs[i]);
  }
  return fmt::format("{}", fmt::join(tags, " "));
}

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + '"';
}

// What is not told is empty.
std::string field_of(double value) { return std::isnan(value) ? "" : fmt::format("{:.6g}", value); }

struct Options {
  std::string path, file, out, format, data;
  std::optional<int> samples;
  PredictOptions how;
};

struct Format {
  std::string_view name;
  std::string (*text)(const PredictedRows& rows);
};
constexpr std::array kFormats{Format{"csv", predictions_csv}, Format{"jsonl", predictions_jsonl}};

// The one that is asked for, else the one that --out ends in, else the first.
const Format& format_of_output(const Options& options) {
  if (!options.format.empty()) return find_row("format", kFormats, options.format);
  for (const Format& format : kFormats) {
    if (fs::path(options.out).extension() == fmt::format(".{}", format.name)) return format;
  }
  return kFormats.front();
}

// Gives the exit code.
int predict(const Options& options) {
  const Format& format = format_of_output(options);
  const PredictedRows rows = predict_file(options.path, options.file, data_folder(options.data),
                                          options.samples, options.how);
  for (const std::string& note : rows.notes) say("{}\n", note);
  const std::string text = format.text(rows);
  if (options.out.empty()) {
    print_bytes(text);
  } else {
    replace_file(options.out, std::as_bytes(std::span(text)));
  }
  std::size_t outliers = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) outliers += rows.outlier(i);
  say("{} examples, {} of them unlike the training data; {}\n", rows.size(), outliers,
      rows.samples > 0 ? fmt::format("mean prediction of {} draws", rows.samples)
                       : "prediction at the mean");
  return exit_code_of(rows.verdict);
}

}  // namespace

PredictedRows predict_file(const fs::path& run_or_checkpoint, const fs::path& file,
                           const fs::path& data_folder, std::optional<int> asked,
                           const PredictOptions& how) {
  const SavedPosterior saved = read_posterior(run_or_checkpoint);
  std::error_code ignored;
  if (!fs::exists(file, ignored)) {
    throw InputError(fmt::format("predict: {} is missing", file.string()));
  }
  const Inputs in = read_inputs(saved, file, data_folder);
  const auto model = model_of(saved, in.info);
  PredictedRows rows{.target = in.info.target,
                     .outputs = names_of(in.info),
                     .values = {},
                     .entropy = {},
                     .mutual_information = {},
                     .outlier_score = {}};
  rows.withheld = saved.withheld;
  rows.notes = in.notes;
  rows.off_constants = in.off_constants;
  if (const std::string note = unfinished(saved); !note.empty()) rows.notes.push_back(note);
  if (const std::string note = curvature_note(saved); !note.empty()) rows.notes.push_back(note);
  if (const std::string note = distrust(saved); !note.empty()) rows.notes.push_back(note);
  rows.verdict = saved.verdict;
  const int samples = draws_to_average(saved, asked);
  Predictive predictive(*model, saved.state, {how.average, how.temperature});
  // A deviation is read as an interval, and how far rounds scatter around their average is none.
  const bool deviates = in.info.target == TargetKind::real || in.info.target == TargetKind::count;
  const bool spread = how.average
                          ? saved.state.average.rounds > 1 && !deviates && saved.withheld.empty()
                          : saved.posterior;
  const bool posterior = spread && samples > 0;
  if (const double temperature = predictive.temperature(posterior); temperature != 1) {
    rows.notes.push_back(fmt::format(
        "probabilities are those at temperature {:.4g}, which clients fitted after round {}; "
        "--no-temperature: as the model has them",
        temperature, saved.state.temperatures.round));
  }
  if (posterior) {
    rows.samples = samples;
    if (saved.curvature && !how.average) {
      rows.notes.emplace_back("draws are from the posterior of a last round of curvature");
    }
    predictive.marginal(
        {.seed = saved.recipe.seed,
         .round = saved.state.round,
         .samples = samples,
         .entropy = true},
        in.batches.size(), [&](std::size_t i) -> const Batch& { return in.batches[i]; },
        [&](std::size_t, const Predictions& p) { append(p, *model, samples > 1, rows); });
    if (const std::string note = start_note(saved); !note.empty()) rows.notes.push_back(note);
    if (samples == 1) {
      rows.notes.emplace_back(
          "one draw has no spread: what is not known of the weights is not told");
    }
  } else {
    if (samples > 0 && how.average && deviates && saved.withheld.empty()) {
      rows.notes.emplace_back(
          "an average has no posterior: deviations are the outcome's noise alone");
    } else if (samples > 0 || !saved.withheld.empty()) {
      rows.notes.push_back(no_draws(saved, "predictions"));
    }
    for (const Batch& batch : in.batches) {
      append(predictive.point(batch), *model, false, rows);
    }
  }
  if (rows.target == TargetKind::binary && in.info.table) {
    rows.notes.push_back(meaning_of_yes(in.info.table->spec));
  }
  score_outliers(in, *model, how.average ? saved.state.average.mean : point_estimate(saved.state),
                 rows);
  return rows;
}

std::string predictions_csv(const PredictedRows& rows) {
  const bool real = has_deviation(rows.target);
  std::string out = "row";
  for (const std::string& name : rows.outputs) out += "," + quoted(real ? name : "p_" + name);
  out += real ? "" : ",prediction";
  out += ",entropy,mutual_information,outlier_score,out_of_distribution\n";
  const std::size_t width = rows.outputs.size();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto values = std::span(rows.values).subspan(i * width, width);
    out += fmt::format("{}", i + 1);
    for (const double value : values) out += "," + field_of(value);
    if (!real) out += "," + quoted(prediction(rows, values));
    out += "," + field_of(rows.entropy[i]) + ",";
    if (!rows.mutual_information.empty()) out += fmt::format("{:.6g}", rows.mutual_information[i]);
    out += fmt::format(",{:.6g},{}\n", rows.outlier_score[i], rows.outlier(i) ? 1 : 0);
  }
  return out;
}

std::string predictions_jsonl(const PredictedRows& rows) {
  const bool real = has_deviation(rows.target);
  const std::size_t width = rows.outputs.size();
  std::string out;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto values = std::span(rows.values).subspan(i * width, width);
    Json line{{"row", i + 1}};
    Json named = Json::object();
    for (std::size_t j = 0; j < width; ++j) named[rows.outputs[j]] = values[j];
    if (real) {
      line.update(named);
    } else {
      line["probabilities"] = std::move(named);
      line["prediction"] = prediction(rows, values);
    }
    line["entropy"] = rows.entropy[i];
    line["mutual_information"] =
        rows.mutual_information.empty() ? Json(nullptr) : Json(rows.mutual_information[i]);
    line["outlier_score"] = rows.outlier_score[i];
    line["out_of_distribution"] = rows.outlier(i);
    if (!rows.withheld.empty()) line["withheld"] = rows.withheld;
    out += line.dump() + "\n";
  }
  return out;
}

void add_predict_command(Command& app, int& exit_code) {
  auto options = std::make_shared<Options>();  // shared: the callback outlives this function
  Command* command =
      app.add_subcommand("predict", "probabilities and their uncertainty for new rows or images");
  command->add_option("run", options->path, "run directory or checkpoint")->required();
  command->add_option("--data", options->file, "CSV or TSV table, IDX images, CIFAR-100 records")
      ->required();
  command->add_option("--out", options->out, "where the predictions go; default: printed");
  command->add_option("--format", options->format,
                      alternatives(names_of(kFormats)) + "; default by the name of --out");
  command
      ->add_option("--samples", options->samples,
                   "draws to average, 0: the mean alone; default evaluate.samples, or 10")
      ->check(whole_number(0, 100000));
  command->add_flag("--average", options->how.average,
                    "use the server's average and draws around it in place of the posterior");
  command->add_flag("!--no-temperature", options->how.temperature,
                    "leave probabilities as the model has them where clients fitted a temperature");
  command->add_option("--training-data", options->data,
                      "folder with data sets, where they are needed; default $FEDEP_DATA");
  command->callback([options, &exit_code] { exit_code = predict(*options); });
}

}  // namespace fedep
