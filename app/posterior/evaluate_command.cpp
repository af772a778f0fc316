#include "app/posterior/evaluate_command.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/output.h"
#include "app/posterior/detection_text.h"
#include "app/posterior/evaluation_file.h"
#include "app/posterior/predict_inputs.h"
#include "app/posterior/risk_text.h"
#include "app/posterior/saved_posterior.h"
#include "app/posterior/selective_text.h"
#include "app/reproduce/table_metrics.h"
#include "app/run/run_recipe.h"
#include "app/run/run_warnings.h"
#include "app/trust.h"
#include "app/whole_number.h"
#include "fedep/data/table/table_features.h"
#include "fedep/message/error.h"
#include "fedep/sim/learning_task.h"
#include "fedep/sim/score/score_state.h"

namespace fedep {
namespace {

constexpr std::string_view kMarginal = "_marginal";

Json json_of(const Metrics& metrics) {
  Json out = Json::object();
  for (const auto& [name, value] : metrics) out[name] = number_or_null(value);
  return out;
}

// The value of this name, if there is one.
std::optional<double> find(const Metrics& metrics, std::string_view name) {
  for (const auto& [key, value] : metrics) {
    if (key == name) return value;
  }
  return std::nullopt;
}

std::string cell(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? fmt::format("{:>10.4f}", *value)
                                        : fmt::format("{:>10}", "-");
}

// Clients one below the other: each score at the mean and, after a slash, marginalised.
std::string client_table(const EvaluateReport& report) {
  std::size_t width = std::string_view("client").size();
  for (const ClientEvaluation& row : report.scores.clients)
    width = std::max(width, row.client.size());
  std::string out = fmt::format("\n{:<{}}  {:>8}", "client", width, "examples");
  for (const auto& [name, value] : report.scores.metrics) {
    if (!name.ends_with("equal_mass") && !name.ends_with("equal_mass_marginal")) {
      out += fmt::format("  {:>{}}", name, std::max<std::size_t>(10, name.size()));
    }
  }
  out += '\n';
  for (const ClientEvaluation& row : report.scores.clients) {
    out += fmt::format("{:<{}}  {:>8}", row.client, width, row.examples);
    for (const auto& [name, value] : row.metrics) {
      if (name.ends_with("equal_mass") || name.ends_with("equal_mass_marginal")) continue;
      out += fmt::format("  {:>{}}", cell(value), std::max<std::size_t>(10, name.size()));
    }
    out += '\n';
  }
  return out;
}

// Scores that a temperature moves, under names of their own, beside those without it.
void append_calibrated(const Metrics& from, Metrics& to) {
  for (const auto& [name, value] : from) {
    if (!detail::depends_on_temperature(name)) continue;
    to.emplace_back(detail::with_suffix(name, "_calibrated"), value);
  }
}
void append_calibrated(const PosteriorEvaluation& from, PosteriorEvaluation& to) {
  append_calibrated(from.metrics, to.metrics);
  for (std::size_t i = 0; i < to.clients.size(); ++i) {
    append_calibrated(from.clients[i].metrics, to.clients[i].metrics);
  }
}

bool did_not_work(const SavedPosterior& saved) {
  const std::filesystem::path log = saved.file.parent_path() / "log.jsonl";
  std::error_code ignored;
  return std::filesystem::exists(log, ignored) && often_refused(summary_of(read_history(log)));
}

// Examples that are to be told from held-out ones: those of unseen classes, those of a file.
std::vector<UnlikeSet> unlike_sets(const SavedPosterior& saved, const Dataset& data,
                                   const std::filesystem::path& file,
                                   std::vector<std::string>& notes) {
  std::vector<UnlikeSet> out;
  if (!saved.recipe.data.unseen_classes.empty()) {
    if (auto set = unseen_classes_of(data)) {
      out.push_back(std::move(*set));
    } else {
      notes.emplace_back("no example of data.unseen_classes is held out: none can be told apart");
    }
  }
  if (file.empty()) return out;
  if (data.info().table && data.info().table->spec.is_time_to_event()) {
    throw InputError("evaluate: --unlike is not for a time to event, whose rows are many pieces");
  }
  PredictInputs in = read_inputs(saved, file, data, "");
  notes.insert(notes.end(), in.notes.begin(), in.notes.end());
  out.push_back({.name = file.filename().string(),
                 .batches = std::move(in.batches),
                 .clients = std::move(in.clients)});
  return out;
}

struct Options {
  std::string path, data, out, unlike;
  std::optional<int> samples;
  bool last_layer = false, per_client = false, json = false, average = false;
};

void evaluate(const Options& options) {
  const EvaluateReport report =
      evaluate_run(options.path, data_folder(options.data),
                   {options.samples, options.last_layer, options.average, options.unlike});
  for (const std::string& note : report.notes) say("{}\n", note);
  const Json json = evaluation_json(report);
  print_text("{}", options.json ? json.dump() + "\n" : evaluation_text(report, options.per_client));
  std::error_code ignored;
  const bool is_run = std::filesystem::is_directory(options.path, ignored);
  if (options.out.empty() && !is_run) return;
  // The page shows evaluation.json as the run's own.
  const char* file_name = options.average ? "evaluation-average.json" : "evaluation.json";
  const std::filesystem::path out = options.out.empty()
                                        ? std::filesystem::path(options.path) / file_name
                                        : std::filesystem::path(options.out);
  write_evaluation(out, json);
  say("evaluation is in {}\n", out.string());
}

}  // namespace

EvaluateReport evaluate_run(const std::filesystem::path& run_or_checkpoint,
                            const std::filesystem::path& data_folder, const EvaluateDraws& draws) {
  const SavedPosterior saved = read_posterior(run_or_checkpoint);
  if (draws.average) check_average(saved);
  const auto data = open_task_data(saved.recipe, data_folder);
  check_features(saved, data->info());
  const auto model = model_of(saved, data->info());
  const int samples = draws_to_average(saved, draws.samples);
  // Scores over draws are among the results that the paper's recipes are compared by.
  const bool as_in_paper = !saved.recipe.table.empty() && is_proper(saved.state.global);
  const bool told = saved.withheld.empty() || as_in_paper;
  const bool spread = told && (draws.average ? can_draw_around_average(saved) : saved.infers());
  const bool marginal = spread && samples > 0;
  std::optional<DrawSettings> settings;
  if (marginal) {
    settings = {.seed = saved.recipe.seed,
                .round = saved.state.round,
                .samples = samples,
                .last_layer = draws.last_layer};
  }
  std::vector<std::string> notes;
  const std::vector<UnlikeSet> unlike = unlike_sets(saved, *data, draws.unlike, notes);
  EvaluateReport report{.data = data->info().name,
                        .algorithm = saved.algorithm,
                        .round = saved.state.round,
                        .samples = marginal ? samples : 0,
                        .last_layer = draws.last_layer,
                        .average = draws.average,
                        .scores = evaluate_posterior(*data, *model, saved.state, settings,
                                                     {.average = draws.average}, unlike),
                        .withheld = told ? "" : saved.withheld,
                        .notes = std::move(notes)};
  // Those of draws were fitted to draws of all weights.
  const Temperatures& fitted = saved.state.temperatures;
  if (fitted.of(draws.average, false) > 0 && !draws.last_layer) {
    const bool of_draws = fitted.of(draws.average, true) > 0;
    report.calibrated =
        evaluate_posterior(*data, *model, saved.state, of_draws ? settings : std::nullopt,
                           {.average = draws.average, .tempered = true}, unlike);
    append_calibrated(*report.calibrated, report.scores);
    if (fitted.round != saved.state.round) {
      report.notes.push_back(fmt::format(
          "scores named calibrated are at temperatures that clients fitted after round {}",
          fitted.round));
    }
    if (marginal && !of_draws) {
      report.notes.push_back("draws are scored without a temperature: " +
                             no_temperature_of_draws(saved, draws.average));
    }
    if (std::string note = few_draws_note(saved, draws.average, samples);
        marginal && !note.empty()) {
      report.notes.push_back(std::move(note));
    }
  }
  report.verdict = saved.verdict;
  if (const std::string note = distrust(saved); !note.empty()) report.notes.push_back(note);
  const std::string not_over = unfinished(saved);
  if (!not_over.empty()) report.notes.push_back(not_over);
  if (!not_over.empty() && report.withheld.empty()) return report;
  if (const std::string note = curvature_note(saved); !note.empty()) report.notes.push_back(note);
  if (marginal && saved.curvature && !draws.average) {
    report.notes.emplace_back("draws are from the posterior of a last round of curvature");
  }
  if (!spread && (samples > 0 || !report.withheld.empty())) {
    report.notes.push_back(no_draws(saved, "scores", draws.average));
  } else if (const std::string note = start_note(saved); marginal && !note.empty()) {
    report.notes.push_back(note);
  }
  if (!not_over.empty() || did_not_work(saved) || saved.recipe.model.estimate_noise) return report;
  const std::string doubt =
      noise_doubt(report.scores.metrics, saved.recipe.model.noise, held_out_numbers(*data, 0));
  if (!doubt.empty()) report.notes.push_back(doubt);
  return report;
}

std::string evaluation_text(const EvaluateReport& report, bool per_client) {
  std::string out = fmt::format("{}, {} after {} rounds: {} held-out examples of {} clients\n",
                                report.data, report.algorithm, report.round, report.scores.examples,
                                report.scores.clients.size());
  if (report.average) out += "of the server's average over rounds, not of its latest state\n";
  if (report.samples > 0) {
    out += fmt::format("marginal: mean prediction of {} draws of {}\n", report.samples,
                       report.last_layer ? "the last layer's weights" : "all weights");
  }
  std::size_t width = 16;
  for (const auto& [key, value] : report.scores.metrics) {
    if (!key.ends_with(kMarginal)) width = std::max(width, key.size() + 1);
  }
  out += fmt::format("\n{:<{}}{:>10}{:>10}\n", "", width, "point",
                     report.samples > 0 ? "marginal" : "");
  for (const auto& [key, value] : report.scores.metrics) {
    const std::string name =
        key.substr(0, key.size() - (key.ends_with(kMarginal) ? kMarginal.size() : 0));
    const std::optional<double> point = find(report.scores.metrics, name);
    if (point && key != name) continue;  // beside the point's
    out += fmt::format("{:<{}}{}", name, width, cell(point));
    if (report.samples > 0) {
      out += cell(find(report.scores.metrics, name + std::string(kMarginal)));
    }
    out += '\n';
  }
  if (per_client) out += client_table(report);
  const PosteriorEvaluation* calibrated = report.calibrated ? &*report.calibrated : nullptr;
  return out + selective_text(report.scores, calibrated, report.average) +
         detection_text(report.scores, calibrated) +
         risk_text(report.scores, calibrated, per_client);
}

Json evaluation_json(const EvaluateReport& report) {
  Json clients = Json::array();
  for (const ClientEvaluation& row : report.scores.clients) {
    clients.push_back(
        {{"client", row.client}, {"examples", row.examples}, {"metrics", json_of(row.metrics)}});
  }
  Json json{{"data", report.data},
            {"algorithm", report.algorithm},
            {"samples", report.samples},
            {"layers", report.last_layer ? "last" : "all"},
            {"average", report.average},
            {"examples", report.scores.examples},
            {"metrics", json_of(report.scores.metrics)},
            {"run", trust_json(report.verdict)}};
  json.update(evaluation_json(report.round, {report.scores.point, report.scores.marginal}));
  json["per_client"] = std::move(clients);
  if (!report.withheld.empty()) json["withheld"] = report.withheld;
  const PosteriorEvaluation* calibrated = report.calibrated ? &*report.calibrated : nullptr;
  if (calibrated != nullptr) add_calibrated({calibrated->point, calibrated->marginal}, json);
  if (Json risk = risk_json(report.scores, calibrated); !risk.is_null()) {
    json["risk"] = std::move(risk);
  }
  if (Json selective = selective_json(report.scores, calibrated); !selective.is_null()) {
    json["selective"] = std::move(selective);
  }
  if (Json detection = detection_json(report.scores, calibrated); !detection.is_null()) {
    json["detection"] = std::move(detection);
  }
  return json;
}

void add_evaluate_command(Command& app, int&) {
  auto options = std::make_shared<Options>();  // shared: the callback outlives this function
  Command* command = app.add_subcommand(
      "evaluate", "a posterior's scores on held-out examples, at its mean and averaged over draws");
  command->add_option("run", options->path, "run directory or checkpoint")->required();
  command->add_option("--data", options->data, "folder with data sets; default $FEDEP_DATA");
  command
      ->add_option("--samples", options->samples,
                   "draws to average, 0: the mean alone; default evaluate.samples, or 10")
      ->check(whole_number(0, 100000));
  command->add_flag("--last-layer", options->last_layer,
                    "draw the last layer's weights only, all others at their mean");
  command->add_flag("--average", options->average,
                    "score the server's average and draws around it in place of the posterior");
  command->add_option("--unlike", options->unlike,
                      "rows or images of another kind, as predict reads them: are they noticed?");
  command->add_flag("--per-client", options->per_client, "print a line for every client too");
  command->add_flag("--json", options->json, "one line of JSON in place of the table");
  command->add_option("--out", options->out,
                      "where the JSON is kept; default RUN/evaluation.json for a run, "
                      "RUN/evaluation-average.json with --average");
  command->callback([options] { evaluate(*options); });
}

}  // namespace fedep
