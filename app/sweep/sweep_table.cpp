#include "app/sweep/sweep_table.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "app/reproduce/comparison.h"
#include "app/text_table.h"

namespace fedep {
namespace {

constexpr double kNotThere = std::numeric_limits<double>::quiet_NaN();

// Every score that some run has, in the order they appear.
std::vector<std::string> score_names(std::span<const SweptCell> cells) {
  std::vector<std::string> names;
  for (const SweptCell& cell : cells) {
    for (const SweptRun& run : cell.runs) {
      for (const auto& [name, value] : run.scores) {
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
      }
    }
  }
  return names;
}

// Of each run, NaN where it has no such score.
std::vector<double> values_of(const SweptCell& cell, const std::string& name) {
  std::vector<double> values;
  for (const SweptRun& run : cell.runs) {
    const auto found = std::find_if(run.scores.begin(), run.scores.end(),
                                    [&](const auto& score) { return score.first == name; });
    values.push_back(found == run.scores.end() ? kNotThere : found->second);
  }
  return values;
}

std::size_t distrusted(const SweptCell& cell) {
  return std::size_t(std::count_if(cell.runs.begin(), cell.runs.end(), [](const SweptRun& run) {
    return run.verdict.trust == Trust::none;
  }));
}

Json spread_json(std::vector<double> values) {
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  const double n = double(values.size());
  double mean = 0, squares = 0;
  for (const double value : values) mean += value / n;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return {{"mean", values.empty() ? Json(nullptr) : number_or_null(mean)},
          {"sd", n > 1 ? number_or_null(std::sqrt(squares / (n - 1))) : Json(nullptr)},
          {"seeds", values.size()}};
}

Json settings_of(const Cell& cell) {
  Json out = Json::object();
  for (const std::string& text : cell.overrides) {
    const auto equals = text.find('=');
    out[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return out;
}

}  // namespace

std::string sweep_text(std::span<const SweptCell> cells) {
  TextLines lines{{"settings"}};
  const std::vector<std::string> names = score_names(cells);
  lines[0].insert(lines[0].end(), names.begin(), names.end());
  lines[0].emplace_back("runs");
  bool any_doubted = false;
  for (const SweptCell& cell : cells) {
    const std::string name = cell.cell.name();
    std::vector<std::string>& line = lines.emplace_back();
    const std::size_t doubted = distrusted(cell);
    line.push_back(name.empty() ? "as the recipe has them" : name);
    if (doubted > 0) line[0] += " *";  // the first column is there in every block
    any_doubted |= doubted > 0;
    for (const std::string& score : names) {
      line.push_back(spread_text(values_of(cell, score), 1, 4));
    }
    line.push_back(doubted == 0
                       ? fmt::format("{}", cell.runs.size())
                       : fmt::format("{}, {} not to be trusted", cell.runs.size(), doubted));
  }
  return text_table(lines) + (any_doubted ? "* has runs that are not to be trusted\n" : "");
}

Json sweep_json(const std::string& recipe, std::span<const GridKey> grid,
                std::span<const SweptCell> cells) {
  Json keys = Json::object(), rows = Json::array(), seeds = Json::array();
  for (const GridKey& key : grid) keys[key.key] = key.values;
  const std::vector<std::string> names = score_names(cells);
  for (const SweptCell& cell : cells) {
    Json scores = Json::object(), runs = Json::array();
    for (const std::string& name : names) scores[name] = spread_json(values_of(cell, name));
    for (const SweptRun& run : cell.runs) {
      Json own = Json::object();
      for (const auto& [name, value] : run.scores) own[name] = number_or_null(value);
      runs.push_back({{"seed", run.seed},
                      {"run", run.out.string()},
                      {"scores", std::move(own)},
                      {"trusted", run.verdict.trust != Trust::none}});
    }
    rows.push_back({{"settings", settings_of(cell.cell)},
                    {"scores", std::move(scores)},
                    {"runs", std::move(runs)}});
  }
  if (!cells.empty()) {
    for (const SweptRun& run : cells.front().runs) seeds.push_back(run.seed);
  }
  return {{"recipe", recipe},
          {"grid", std::move(keys)},
          {"seeds", std::move(seeds)},
          {"cells", std::move(rows)}};
}

}  // namespace fedep
