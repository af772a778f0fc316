#include "app/reproduce/compare_command.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "app/output.h"
#include "app/printable.h"
#include "app/text_table.h"
#include "app/trust.h"
#include "fedep/config/read_recipe.h"
#include "fedep/message/check.h"
#include "fedep/page/report/run_record.h"
#include "fedep/store/json.h"
#include "fedep/store/log/history.h"

namespace fedep {
namespace {

struct Summary {
  std::string name, path;
  std::optional<Verdict> verdict;  // of a run that is over
  std::string algorithm;           // of the last round
  std::int64_t rounds = 0;
  double seconds = 0;
  double megabytes_up = 0;
  Metrics scores;  // of the last round that was scored
};

Metrics scores_of(const RoundRecord& round) {
  Metrics scores = round.scores;
  std::erase_if(scores, [](const auto& score) { return std::isnan(score.second); });
  for (auto& [name, value] : scores) name = printable(name);
  return scores;
}

Summary summarise(const std::filesystem::path& run, const std::string& name) {
  Summary summary;
  summary.name = printable(name);
  summary.path = run.string();
  const History history = read_history(run / "log.jsonl");
  if (std::filesystem::exists(run / "recipe.toml")) {
    const Recipe recipe = read_recipe(run / "recipe.toml");
    if (is_finished(recipe, history)) summary.verdict = verdict_of(recipe, history);
  }
  for (const RoundRecord& round : history.rounds) {
    ++summary.rounds;
    summary.algorithm = printable(round.phase);
    summary.seconds += round.seconds;
    summary.megabytes_up += double(round.bytes_up) / 1e6;
    if (Metrics scores = scores_of(round); !scores.empty()) summary.scores = std::move(scores);
  }
  if (summary.rounds == 0) {
    throw InputError(fmt::format("{}: run must have played a round, but has not", run.string()));
  }
  return summary;
}

bool is_doubted(const Summary& summary) {
  return summary.verdict && summary.verdict->trust == Trust::none;
}

// A list with a run's scores each; numbers that do not exist are not there.
void print_json(const std::vector<Summary>& summaries) {
  Json list = Json::array();
  for (const Summary& summary : summaries) {
    Json scores = Json::object();
    for (const auto& [name, value] : summary.scores) scores[name] = value;
    list.push_back({{"run", summary.name},
                    {"path", summary.path},
                    {"trust", summary.verdict ? trust_json(*summary.verdict) : Json(nullptr)},
                    {"algorithm", summary.algorithm},
                    {"rounds", summary.rounds},
                    {"seconds", summary.seconds},
                    {"megabytes_up", summary.megabytes_up},
                    {"scores", std::move(scores)}});
  }
  print_text("{}\n", list.dump());
}

void compare(const std::vector<std::string>& runs, bool json) {
  std::vector<Summary> summaries;
  std::vector<std::string> columns;  // every score that some run has, in the order they appear
  const std::vector<std::string> names = names_of({runs.begin(), runs.end()});
  for (std::size_t i = 0; i < runs.size(); ++i) {
    summaries.push_back(summarise(runs[i], names[i]));
    for (const auto& [name, value] : summaries.back().scores) {
      if (std::find(columns.begin(), columns.end(), name) == columns.end()) columns.push_back(name);
    }
  }
  if (json) return print_json(summaries);
  TextLines lines{{"run", "algorithm", "rounds", "seconds", "MB up"}};
  lines[0].insert(lines[0].end(), columns.begin(), columns.end());
  for (Summary& summary : summaries) {
    if (is_doubted(summary)) {
      say("{}: {}\n", summary.name, trust_text(*summary.verdict));
      summary.name += " *";
    }
    auto& line = lines.emplace_back(std::vector{
        summary.name, summary.algorithm, fmt::format("{}", summary.rounds),
        fmt::format("{:.1f}", summary.seconds), fmt::format("{:.2f}", summary.megabytes_up)});
    for (const std::string& column : columns) {
      const auto found = std::find_if(summary.scores.begin(), summary.scores.end(),
                                      [&](const auto& score) { return score.first == column; });
      line.push_back(found == summary.scores.end() ? "-" : fmt::format("{:.4f}", found->second));
    }
  }
  print_text("{}", text_table(lines));
}

}  // namespace

void add_compare_command(Command& app, int&) {
  struct Options {
    std::vector<std::string> runs;
    bool json = false;
  };
  auto options = std::make_shared<Options>();  // shared: the callback outlives this function
  Command* command = app.add_subcommand("compare", "the last scores of several runs side by side");
  command->add_option("runs", options->runs, "run directories")->required();
  command->add_flag("--json", options->json, "one line of JSON in place of the table");
  command->callback([options] { compare(options->runs, options->json); });
}

}  // namespace fedep
