#include "app/reproduce/table_metrics.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "fedep/metric/curve.h"

namespace fedep {
namespace {

bool is_round(const Json& line) { return line.value("kind", "") == "round"; }

double number_at(const Json& line, std::string_view key) {
  const auto found = line.find(std::string(key));
  return found != line.end() && found->is_number() ? found->get<double>() : kNotThere;
}

const Json* last_round(std::span<const Json> log) {
  const auto found = std::find_if(log.rbegin(), log.rend(), is_round);
  return found == log.rend() ? nullptr : &*found;
}

double reading_of(const Measure& measure, std::span<const Json> log, int every) {
  if (measure.reading == Reading::last) {
    const Json* line = last_round(log);
    return line != nullptr ? number_at(*line, measure.metric) : kNotThere;
  }
  const std::vector<double> curve = curve_of(log, measure.metric, every);
  if (curve.empty()) return kNotThere;
  const auto points = [&](std::size_t rounds) {
    return std::max<std::size_t>(1, rounds / std::size_t(every));
  };
  if (measure.reading == Reading::rounds_to) {
    const auto reached = rounds_to_threshold(curve, measure.threshold, points(kThresholdWindow));
    return reached ? double(*reached * every) : kNotThere;
  }
  std::size_t until = points(std::size_t(measure.round));
  if (measure.reading == Reading::best) until = std::min(until, curve.size());
  return best_by_round(curve, std::int64_t(until), points(kBestWindow));
}

}  // namespace

bool is_scored_every(std::span<const Json> log, int every) {
  if (every <= 0) return false;
  return std::all_of(log.begin(), log.end(), [&](const Json& line) {
    return !is_round(line) || (line.value("round", std::int64_t{-1}) + 1) % every != 0 ||
           !last_metrics({&line, 1}).empty();
  });
}

std::vector<double> score_after_rounds(std::span<const Json> log, std::string_view metric) {
  std::vector<double> values;
  for (const Json& line : log) {
    if (is_round(line)) values.push_back(number_at(line, metric));
  }
  return values;
}

std::vector<double> curve_of(std::span<const Json> log, std::string_view metric, int every) {
  std::vector<double> curve;
  if (!is_scored_every(log, every)) return curve;
  const std::vector<double> values = score_after_rounds(log, metric);
  for (std::size_t i = std::size_t(every) - 1; i < values.size(); i += std::size_t(every)) {
    curve.push_back(values[i]);
  }
  return curve;
}

Metrics table_metrics(const PaperTable& table, std::span<const Json> log, int every) {
  Metrics metrics;
  for (const Measure& measure : table.measures) {
    metrics.emplace_back(measure.name, reading_of(measure, log, every));
  }
  return metrics;
}

Metrics last_metrics(std::span<const Json> log) {
  Metrics metrics;
  const Json* line = last_round(log);
  if (line == nullptr) return metrics;
  // Scores follow the round's own numbers, of which the training loss is the last (run_log.cpp).
  bool are_scores = false;
  for (const auto& [key, value] : line->items()) {
    if (are_scores) metrics.emplace_back(key, number_at(*line, key));
    are_scores |= key == "train_loss";
  }
  return metrics;
}

RunSummary summary_of(std::span<const Json> log) {
  RunSummary summary;
  for (const Json& line : log) {
    if (is_round(line)) {
      ++summary.rounds;
      const double seconds = number_at(line, "seconds");
      if (std::isfinite(seconds)) summary.seconds += seconds;
      summary.refused_rounds += number_at(line, "outside_grid") > 0;
    }
  }
  if (log.empty()) return summary;
  summary.finished = log.back().value("kind", "") == "end" &&
                     log.back().value("rounds", std::int64_t{-1}) == summary.rounds;
  summary.device = log.front().value("device", "");
  summary.version = log.front().value("version", "");
  return summary;
}

std::string refusals_text(const RunSummary& summary) {
  if (summary.refused_rounds == 0) return {};
  return fmt::format("clients' answers were refused in {} of {} rounds", summary.refused_rounds,
                     summary.rounds);
}

bool often_refused(const RunSummary& summary) {
  return 10 * summary.refused_rounds > summary.rounds;
}

}  // namespace fedep
