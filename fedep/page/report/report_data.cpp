#include "fedep/page/report/report_data.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>

#include "fedep/algorithm/algorithm.h"
#include "fedep/config/write_recipe.h"
#include "fedep/page/report/evaluation_part.h"
#include "fedep/page/report/factor_gap_text.h"
#include "fedep/page/report/forest_json.h"
#include "fedep/page/report/recipe_diff.h"
#include "fedep/page/report/run_curves.h"

namespace fedep {
namespace {

// More clients than this are shown by how often they were asked, not one by one.
constexpr std::size_t kMostClientsShown = 600;

// Seven digits are more than a screen shows; NaN has no JSON.
Json rounded(double value) {
  if (!std::isfinite(value)) return nullptr;
  return std::strtod(fmt::format("{:.7g}", value).c_str(), nullptr);
}

Json rounded(const std::vector<double>& values) {
  Json out = Json::array();
  for (const double value : values) out.push_back(rounded(value));
  return out;
}

std::string_view status_name(RunStatus status) {
  switch (status) {
    case RunStatus::finished:
      return "finished";
    case RunStatus::running:
      return "running";
    case RunStatus::stopped:
      break;
  }
  return "stopped";
}

// Sums over the rounds so far.
std::vector<double> cumulative(const RunRecord& run, const auto& of_round) {
  std::vector<double> sums;
  double sum = 0;
  for (const RoundRecord& round : run.history.rounds) sums.push_back(sum += of_round(round));
  return sums;
}

double bytes_of(const RoundRecord& round) { return double(round.bytes_up + round.bytes_down); }
double seconds_of(const RoundRecord& round) { return round.seconds; }

// How the phase infers precisions; point estimates have none to infer, whatever the recipe says.
std::string inference_of(const PhaseSettings& phase) {
  const bool infers = phase.inference && !find_algorithm(phase.algorithm).point_estimate;
  return infers ? phase.inference->name : "";
}

Json phases_json(const Recipe& recipe) {
  Json phases = Json::array();
  std::int64_t first = 0;
  for (const PhaseSettings& phase : recipe.phases) {
    phases.push_back({{"algorithm", phase.algorithm},
                      {"inference", inference_of(phase)},
                      {"first_round", first},
                      {"rounds", phase.rounds}});
    first += phase.rounds;
  }
  return phases;
}

Json counters_json(const RunRecord& run) {
  RoundCounters counters;
  if (run.so_far) {
    counters = run.so_far->counters;
  } else {
    for (const RoundRecord& round : run.history.rounds) counters.add(round);
  }
  const auto json = [](const RoundCounter& counter) {
    return Json{{"total", counter.total}, {"rounds", counter.rounds}};
  };
  return {{"dropped", json(counters.dropped)},      {"outside_grid", json(counters.outside_grid)},
          {"diverged", json(counters.diverged)},    {"skipped", json(counters.skipped)},
          {"clipped", json(counters.clipped)},      {"guarded", json(counters.guarded)},
          {"backed_off", json(counters.backed_off)}};
}

Json factor_gap_json(const RunRecord& run) {
  const std::optional<RoundRecord> round = last_factor_gap(run.history.rounds);
  if (!round) return nullptr;
  return {{"round", round->round},
          {"eta", rounded(round->factor_gap_eta)},
          {"lambda", rounded(round->factor_gap_lambda)},
          {"text", factor_gap_text(run.recipe, *round)}};
}

// Only the number of clients must be known.
std::optional<Participation> participation_of(const RunRecord& run) {
  if (run.so_far) return run.so_far->participation;
  const std::int64_t clients = run.history.header ? run.history.header->clients : 0;
  if (clients <= 0) return std::nullopt;
  Participation asked(run.recipe.seed, std::size_t(clients),
                      std::size_t(run.recipe.server.clients_per_round));
  asked.count_until(run.played());
  return asked;
}

Json participation_json(const std::optional<Participation>& asked) {
  if (!asked || asked->counted() == 0) return nullptr;
  const std::size_t clients = asked->clients();
  Json out{{"clients", clients}};
  if (clients <= kMostClientsShown) {
    std::vector<std::int64_t> counts(clients, 0);
    for (const auto& [client, count] : asked->times()) counts[client] = count;
    out["counts"] = counts;
  } else {
    std::map<std::int64_t, std::int64_t> clients_by_times{
        {0, std::int64_t(clients - asked->times().size())}};
    for (const auto& [client, count] : asked->times()) ++clients_by_times[count];
    out["times"] = Json::array();
    for (const auto& [count, how_many] : clients_by_times) {
      out["times"].push_back({count, how_many});
    }
  }
  return out;
}

Json posterior_json(const std::optional<PosteriorSpread>& spread) {
  if (!spread) return nullptr;
  if (!spread->withheld.empty()) {
    return {{"round", spread->round},
            {"weights", spread->weights},
            {"improper", spread->improper()},
            {"withheld", spread->withheld}};
  }
  Json out{{"round", spread->round},
           {"weights", spread->weights},
           {"improper", spread->improper()},
           {"isotropic", spread->isotropic},
           {"deviation", spread->isotropic ? rounded(spread->deviation) : Json(nullptr)},
           {"edges", rounded(spread->edges)},
           {"layers", Json::array()}};
  for (const LayerSpread& layer : spread->layers) {
    out["layers"].push_back({{"name", layer.name},
                             {"weights", layer.weights},
                             {"improper", layer.improper},
                             {"low", rounded(layer.low)},
                             {"median", rounded(layer.median)},
                             {"high", rounded(layer.high)},
                             {"counts", layer.counts}});
  }
  if (!spread->note.empty()) out["note"] = spread->note;
  return out;
}

Json curves_json(const RunRecord& run) {
  Json curves = Json::object();
  const auto add = [&](const std::string& name, double value) {
    if (!std::isfinite(value) || curves.contains(name)) return;
    curves[name] = rounded(score_curve(run, name));
  };
  for (const RoundRecord& round : run.history.rounds) {
    add("train_loss", round.train_loss);
    add("moved", score_of(round, "moved"));
    for (const auto& [name, value] : round.scores) add(name, value);
  }
  return curves;
}

Json verdict_json(const std::optional<Verdict>& verdict) {
  if (!verdict) return nullptr;
  return {{"trust", word_of(verdict->trust)}, {"text", to_text(*verdict)}};
}

Json run_json(const RunRecord& run) {
  const PhaseSettings* last = run.recipe.phases.empty() ? nullptr : &run.recipe.phases.back();
  const RunHeader header = run.history.header.value_or(RunHeader{});
  Json out{{"name", run.name},
           {"seed", run.recipe.seed},
           {"status", status_name(run.status)},
           {"played", run.played()},
           {"rounds_each", run.rounds_each()},
           {"rounds", rounds_in(run.recipe)},
           {"algorithm", last != nullptr ? last->algorithm : ""},
           {"inference", last != nullptr ? inference_of(*last) : ""},
           {"data", run.recipe.data.name},
           {"model", run.recipe.model.name},
           {"every", run.recipe.evaluate.every},
           {"asked", run.recipe.server.clients_per_round},
           {"device", header.device},
           {"machine", header.machine},
           {"version", header.version},
           {"recipe", to_toml(run.recipe)},
           {"faults", run.faults},
           {"verdict", verdict_json(run.verdict)},
           {"phases", phases_json(run.recipe)},
           {"bytes", cumulative(run, bytes_of)},
           {"seconds", rounded(cumulative(run, seconds_of))},
           {"curves", curves_json(run)},
           {"counters", counters_json(run)},
           {"factor_gap", factor_gap_json(run)},
           {"participation", participation_json(participation_of(run))},
           {"coefficients", forest_json(run.coefficients)},
           {"posterior", posterior_json(run.posterior)}};
  out.update(evaluation_part(run.evaluation));
  return out;
}

}  // namespace

Json report_data(std::span<const RunRecord> runs, const ReportExtras& extras) {
  Json out{{"version", extras.version},
           {"live", extras.live},
           {"notices", extras.notices},
           {"titles", extras.titles}};
  out["tables"] = Json::array();
  for (const ReportTable& table : extras.tables) {
    out["tables"].push_back({{"title", table.title},
                             {"note", table.note},
                             {"columns", table.columns},
                             {"rows", table.rows}});
  }
  out["groups"] = Json::array();
  for (const RunGroup& group : group_by_seed(runs)) {
    out["groups"].push_back({{"name", group.name}, {"runs", group.runs}});
  }
  out["metrics"] = Json::array();
  for (const std::string& name : scores_in(runs)) {
    const ScoreStyle style = score_style(name);
    out["metrics"].push_back({{"name", name},
                              {"title", style.title},
                              {"percent", style.percent},
                              {"larger_is_better", style.larger_is_better},
                              {"is_score", style.is_score}});
  }
  std::vector<Recipe> recipes;
  for (const RunRecord& run : runs) recipes.push_back(run.recipe);
  const RecipeDiff diff = recipe_diff(recipes);
  out["diff"] = {{"keys", diff.keys}, {"values", diff.values}};
  out["runs"] = Json::array();
  for (const RunRecord& run : runs) out["runs"].push_back(run_json(run));
  return out;
}

}  // namespace fedep
