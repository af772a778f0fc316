#include "app/posterior/coefficients_command.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string_view>

#include <fmt/format.h>

#include "app/output.h"
#include "app/posterior/saved_posterior.h"
#include "app/posterior/stateless_note.h"
#include "app/reproduce/table_metrics.h"
#include "app/run/run_recipe.h"
#include "app/trust.h"
#include "fedep/algorithm/algorithm.h"
#include "fedep/data/registry.h"
#include "fedep/data/table/table_features.h"
#include "fedep/message/error.h"
#include "fedep/message/nearest.h"
#include "fedep/model/registry.h"
#include "fedep/store/json.h"

namespace fedep {
namespace {

constexpr double kNormal975 = 1.959963984540054;  // 97.5 % quantile of the standard normal

// Names of a linear model's weights and bias.
std::vector<std::string> names_of(const Recipe& recipe, const DatasetInfo& data) {
  if (!find_model(recipe.model.name).is_linear) {
    throw InputError(
        fmt::format("coefficients: model must be linear, but is {}", recipe.model.name));
  }
  if (data.feature_names.empty()) {
    throw InputError(fmt::format(
        "coefficients: data must be a table, whose columns have names, but are {}", data.name));
  }
  if (data.outputs != 1) {
    throw InputError(
        fmt::format("coefficients: outcome must be one number or yes and no, but has {} classes",
                    data.outputs));
  }
  std::vector<std::string> names = data.feature_names;
  names.emplace_back("intercept");
  return names;
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

std::vector<double> deviations_of(const Message& q) {
  std::vector<double> out;
  if (q.full()) {
    for (const float v : variance(q)) out.push_back(std::sqrt(double(v)));
  } else {
    for (const float precision : q.lambda_full()) out.push_back(1 / std::sqrt(double(precision)));
  }
  return out;
}

// What intervals rest on.
constexpr const char* kCorrelated =
    "Intervals take columns for uncorrelated; of two that correlate by r they have about\n"
    "sqrt(1 - r^2) of the width they should have: 0.4 of it at r = 0.9 (docs/hospitals.md).\n";
constexpr const char* kFull =
    "Intervals know how columns correlate: the posterior has a full covariance matrix.\n";
constexpr const char* kCurvature =
    "Intervals know how columns correlate: they are of a last round of curvature, the Hessian of\n"
    "all clients' rows at the mean ({:.2g} sd from the mode).\n";
constexpr const char* kStart =
    "alpha's: the part of a coefficient's precision that is still what factors began with, not\n"
    "inferred.\n";
constexpr const char* kNoise =
    "The outcome is taken to have a standard deviation of {} around its prediction (model.noise);\n"
    "where that is wrong by a factor, intervals are too.\n";

// Gives the exit code.
int print_coefficients(const std::string& path, const std::string& data, bool json) {
  const CoefficientTable table = read_coefficients(path, data_folder(data));
  print_text("{}", json ? coefficients_json(table) : coefficients_text(table));
  return exit_code_of(table.verdict);
}

// What a coefficient changes.
std::string_view unit_of(TargetKind target) {
  if (target == TargetKind::binary) return "log-odds";
  return target == TargetKind::count ? "log of the mean count" : "outcome";
}

}  // namespace

double Coefficient::low() const { return mean - kNormal975 * deviation.value(); }
double Coefficient::high() const { return mean + kNormal975 * deviation.value(); }

CoefficientTable read_coefficients(const std::filesystem::path& run_or_checkpoint,
                                   const std::filesystem::path& data_folder) {
  const SavedPosterior saved = read_posterior(run_or_checkpoint);
  const Recipe& recipe = saved.recipe;
  const ServerState& state = saved.state;
  const std::shared_ptr<const TableFeatures> kept = kept_features(saved);
  const DatasetInfo info = kept != nullptr
                               ? info_of(*kept)
                               : open_dataset(recipe.data, recipe.seed, data_folder)->info();
  const std::vector<std::string> names = names_of(recipe, info);
  const auto model = model_of(saved, info);

  CoefficientTable out{
      .data = info.name,
      .algorithm = saved.algorithm,
      .round = state.round,
      .likelihood = model->likelihood(),
      .scaled = recipe.data.scale != ColumnScaling::none,
      .full = state.global.full(),
      .curvature = saved.curvature ? std::optional(saved.curvature->distance) : std::nullopt,
      .withheld = saved.withheld,
      .notes = notes_of(saved),
      .verdict = saved.verdict};
  const TableFeatures* const table = kept != nullptr ? kept.get() : info.table.get();
  const ConstantColumns constant = table != nullptr ? constant_columns(*table) : ConstantColumns{};
  const HostVector<float> means = point_estimate(state);
  const std::vector<double> deviations =
      saved.posterior ? deviations_of(state.global) : std::vector<double>();
  const std::vector<double> shares = start_shares(saved);
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (std::ranges::binary_search(constant.features, i)) continue;
    Coefficient& row = out.rows.emplace_back(names[i], double(means[i]));
    if (saved.posterior) row.deviation = deviations[i];
    if (!shares.empty()) row.start_share = shares[shares.size() == 1 ? 0 : i];
  }
  if (!constant.names.empty()) {
    out.notes.push_back(fmt::format("columns that do not vary in training have no coefficient: {}",
                                    shown_list(constant.names, constant.names.size())));
  }
  return out;
}

std::string coefficients_text(const CoefficientTable& table) {
  std::size_t width = std::string_view("coefficient").size();
  for (const Coefficient& row : table.rows) width = std::max(width, row.name.size());
  const bool posterior = !table.rows.empty() && table.rows[0].deviation;
  std::string out =
      fmt::format("{}, {} after {} rounds\nChange of the {} for one {} of the column\n\n",
                  table.data, table.algorithm, table.round, unit_of(table.likelihood.target),
                  table.scaled ? "standard deviation" : "unit");
  out += fmt::format("{:<{}}  {:>8}", "coefficient", width, posterior ? "mean" : "estimate");
  if (posterior) out += fmt::format("  {:>8}  {:>20}", "sd", "95 % interval");
  const bool begun = posterior && table.rows[0].start_share;
  if (begun) out += fmt::format("  {:>8}", "alpha's");
  out += '\n';
  for (const Coefficient& row : table.rows) {
    out += fmt::format("{:<{}}  {:>8.3f}", row.name, width, row.mean);
    if (posterior) {
      out += fmt::format("  {:>8.3f}  {:>8.3f} to {:>8.3f}", row.deviation.value(), row.low(),
                         row.high());
    }
    if (begun) out += fmt::format("  {:>6.1f} %", 100 * row.start_share.value());
    out += '\n';
  }
  out +=
      table.scaled
          ? "\nColumns were centred and scaled by sums that the clients reported, 0/1 columns of\n"
            "categories too; a missing value stands at the mean. The intercept belongs to a row "
            "with\nevery column at its mean.\n"
          : "\nColumns are as they came; a missing value is 0. The intercept belongs to a row of "
            "zeros.\n";
  if (posterior && table.curvature) {
    out += fmt::format(kCurvature, *table.curvature);
  } else if (posterior) {
    out += table.full ? kFull : kCorrelated;
  }
  if (begun) out += kStart;
  if (posterior && table.likelihood.target == TargetKind::real) {
    out += fmt::format(kNoise, table.likelihood.noise);
  }
  if (!table.withheld.empty()) {
    const bool is_noted = table.withheld == trust_text(table.verdict);
    out += fmt::format("There are no intervals: {}.\n",
                       is_noted ? "the run is not to be trusted" : table.withheld);
  } else if (!posterior) {
    out += fmt::format("{} estimates no uncertainty.\n", table.algorithm);
  }
  for (const std::string& note : table.notes) out += fmt::format("Note: {}.\n", note);
  return out;
}

std::string coefficients_json(const CoefficientTable& table) {
  Json rows = Json::array();
  for (const Coefficient& row : table.rows) {
    Json one{{"name", row.name},
             {"mean", row.mean},
             {"sd", nullptr},
             {"low", nullptr},
             {"high", nullptr}};
    if (row.deviation) {
      one["sd"] = *row.deviation;
      one["low"] = row.low();
      one["high"] = row.high();
    }
    if (row.start_share) one["start_share"] = *row.start_share;
    rows.push_back(std::move(one));
  }
  Json json{{"data", table.data},
            {"algorithm", table.algorithm},
            {"round", table.round},
            {"unit", fmt::format("{} per {}", unit_of(table.likelihood.target),
                                 table.scaled ? "standard deviation" : "unit")},
            {"notes", table.notes},
            {"run", trust_json(table.verdict)},
            {"coefficients", std::move(rows)}};
  if (table.likelihood.target == TargetKind::real) json["noise"] = table.likelihood.noise;
  if (table.full) json["family"] = "full";
  if (table.curvature) json["curvature"] = {{"distance_to_mode", *table.curvature}};
  if (!table.withheld.empty()) json["withheld"] = table.withheld;
  return json.dump() + "\n";
}

void add_coefficients_command(Command& app, int& exit_code) {
  struct Options {
    std::string path, data;
    bool json = false;
  };
  auto options = std::make_shared<Options>();  // shared: the callback outlives this function
  Command* command =
      app.add_subcommand("coefficients", "a linear model's coefficients with their 95 % intervals");
  command->add_option("run", options->path, "run directory or checkpoint")->required();
  command->add_option("--data", options->data, "folder with data sets; default $FEDEP_DATA");
  command->add_flag("--json", options->json, "one line of JSON in place of the table");
  command->callback([options, &exit_code] {
    exit_code = print_coefficients(options->path, options->data, options->json);
  });
}

}  // namespace fedep
