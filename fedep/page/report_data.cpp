#include "fedep/page/report_data.h"

#include <cmath>
#include <functional>
#include <map>
#include <string_view>

#include "fedep/algorithm/algorithm.h"
#include "fedep/config/write_recipe.h"
#include "fedep/page/recipe_diff.h"
#include "fedep/page/run_curves.h"
#include "fedep/round/play_round.h"

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

// What went wrong or was held back, in all and round by round.
Json counters_json(const RunRecord& run) {
  const std::vector<RoundRecord>& played = run.history.rounds;
  Json counters = Json::object();
  const auto add = [&](const char* name, const auto& count_in) {
    double total = 0;
    Json rounds = Json::array();
    for (std::size_t i = 0; i < played.size(); ++i) {
      const auto count = double(std::invoke(count_in, played[i]));
      total += count;
      if (count > 0) rounds.push_back({i + 1, count});
    }
    counters[name] = {{"total", total}, {"rounds", std::move(rounds)}};
  };
  add("dropped", &RoundRecord::dropped);
  add("outside_grid", &RoundRecord::outside_grid);
  add("diverged", &RoundRecord::diverged);
  add("skipped", &RoundRecord::skipped);
  add("clipped", &RoundRecord::clipped);
  add("guarded", &RoundRecord::guarded);
  add("backed_off", [](const RoundRecord& round) { return round.step_scale < 1; });
  return counters;
}

// Who was asked is a function of seed and round; only the number of clients must be known.
Json participation_json(const RunRecord& run) {
  const auto clients = run.history.header ? std::size_t(run.history.header->clients) : 0;
  const auto asked = std::size_t(run.recipe.server.clients_per_round);
  const std::size_t rounds = run.history.rounds.size();
  if (clients == 0 || asked > clients || rounds == 0) return nullptr;
  std::map<std::size_t, std::int64_t> times;
  for (std::size_t round = 0; round < rounds; ++round) {
    for (const std::size_t client :
         sample_clients(run.recipe.seed, std::int64_t(round), clients, asked)) {
      ++times[client];
    }
  }
  Json out{{"clients", clients}};
  if (clients <= kMostClientsShown) {
    std::vector<std::int64_t> counts(clients, 0);
    for (const auto& [client, count] : times) counts[client] = count;
    out["counts"] = counts;
  } else {
    std::map<std::int64_t, std::int64_t> clients_by_times{
        {0, std::int64_t(clients - times.size())}};
    for (const auto& [client, count] : times) ++clients_by_times[count];
    out["times"] = Json::array();
    for (const auto& [count, how_many] : clients_by_times) {
      out["times"].push_back({count, how_many});
    }
  }
  return out;
}

Json posterior_json(const std::optional<PosteriorSpread>& spread) {
  if (!spread) return nullptr;
  Json out{{"round", spread->round},
           {"weights", spread->weights},
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
  return out;
}

// A part of evaluation.json as it is, null where there is none.
Json part_of(const Json& evaluation, const char* key) {
  if (!evaluation.is_object() || !evaluation.contains(key)) return nullptr;
  return evaluation.at(key);
}

Json curves_json(const RunRecord& run) {
  Json curves = Json::object();
  const auto add = [&](const std::string& name, double value) {
    if (!std::isfinite(value) || curves.contains(name)) return;
    curves[name] = rounded(score_curve(run, name));
  };
  for (const RoundRecord& round : run.history.rounds) {
    add("train_loss", round.train_loss);
    for (const auto& [name, value] : round.scores) add(name, value);
  }
  return curves;
}

Json run_json(const RunRecord& run) {
  const PhaseSettings* last = run.recipe.phases.empty() ? nullptr : &run.recipe.phases.back();
  const RunHeader header = run.history.header.value_or(RunHeader{});
  return {{"name", run.name},
          {"seed", run.recipe.seed},
          {"status", status_name(run.status)},
          {"played", run.history.rounds.size()},
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
          {"phases", phases_json(run.recipe)},
          {"bytes", cumulative(run, bytes_of)},
          {"seconds", rounded(cumulative(run, seconds_of))},
          {"curves", curves_json(run)},
          {"counters", counters_json(run)},
          {"participation", participation_json(run)},
          {"reliability", part_of(run.evaluation, "reliability")},
          {"per_client", part_of(run.evaluation, "per_client")},
          {"posterior", posterior_json(run.posterior)}};
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
                              {"larger_is_better", style.larger_is_better}});
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
