#include "app/reproduce/table_metrics.h"

#include <algorithm>

#include <fmt/format.h>

#include "fedep/metric/curve.h"

namespace fedep {
namespace {

double reading_of(const Measure& measure, std::span<const RoundRecord> rounds, int every) {
  if (measure.reading == Reading::last) {
    return rounds.empty() ? kNotThere : score_of(rounds.back(), measure.metric);
  }
  const std::vector<double> curve = curve_of(rounds, measure.metric, every);
  if (curve.empty()) return kNotThere;
  const auto points = [&](std::size_t window) {
    return std::max<std::size_t>(1, window / std::size_t(every));
  };
  if (measure.reading == Reading::rounds_to) {
    const auto reached = rounds_to_threshold(curve, measure.threshold, points(kThresholdWindow));
    return reached ? double(*reached * every) : kNotThere;
  }
  std::size_t until = points(std::size_t(measure.round));
  if (measure.reading == Reading::mean_at_round) {
    if (until > curve.size()) return kNotThere;
    return running_mean(std::span(curve).first(until), points(kThresholdWindow)).back();
  }
  if (measure.reading == Reading::best) until = std::min(until, curve.size());
  return best_by_round(curve, std::int64_t(until), points(kBestWindow));
}

}  // namespace

bool is_scored_every(std::span<const RoundRecord> rounds, int every) {
  if (every <= 0) return false;
  return std::ranges::all_of(rounds, [&](const RoundRecord& round) {
    return (round.round + 1) % every != 0 || !round.scores.empty();
  });
}

std::vector<double> score_after_rounds(std::span<const RoundRecord> rounds,
                                       std::string_view metric) {
  std::vector<double> values;
  for (const RoundRecord& round : rounds) values.push_back(score_of(round, metric));
  return values;
}

std::vector<double> curve_of(std::span<const RoundRecord> rounds, std::string_view metric,
                             int every) {
  std::vector<double> curve;
  if (!is_scored_every(rounds, every)) return curve;
  const std::vector<double> values = score_after_rounds(rounds, metric);
  for (std::size_t i = std::size_t(every) - 1; i < values.size(); i += std::size_t(every)) {
    curve.push_back(values[i]);
  }
  return curve;
}

Metrics table_metrics(const PaperTable& table, std::span<const RoundRecord> rounds, int every) {
  Metrics metrics;
  for (const Measure& measure : table.measures) {
    metrics.emplace_back(measure.name, reading_of(measure, rounds, every));
  }
  return metrics;
}

Metrics last_metrics(std::span<const RoundRecord> rounds) {
  return rounds.empty() ? Metrics{} : rounds.back().scores;
}

RunSummary summary_of(const History& history) {
  RunSummary summary;
  summary.rounds = std::int64_t(history.rounds.size());
  for (const RoundRecord& round : history.rounds) {
    summary.seconds += round.seconds;
    summary.refused_rounds += round.outside_grid > 0;
  }
  summary.finished = history.end && history.end->rounds == summary.rounds;
  if (history.header) {
    summary.device = history.header->device;
    summary.version = history.header->version;
  }
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
