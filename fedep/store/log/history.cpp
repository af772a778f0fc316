#include "fedep/store/log/history.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "fedep/store/log/log_lines.h"

namespace fedep {
namespace {

constexpr double kNotThere = std::numeric_limits<double>::quiet_NaN();

double if_finite(double value) { return std::isfinite(value) ? value : kNotThere; }

}  // namespace

RoundRecord record_of(std::int64_t round, std::string_view phase, const RoundNumbers& numbers,
                      double seconds, Metrics scores) {
  RoundRecord record{.round = round,
                     .phase = std::string(phase),
                     .clients = std::int64_t(numbers.asked),
                     .dropped = std::int64_t(numbers.dropped),
                     .outside_grid = std::int64_t(numbers.outside_grid),
                     .diverged = std::int64_t(numbers.diverged),
                     .skipped = std::int64_t(numbers.skipped),
                     .clipped = std::int64_t(numbers.clipped),
                     .guarded = std::int64_t(numbers.guarded()),
                     .step_scale = numbers.step_scale,
                     .condition = numbers.condition,
                     .factor_gap_eta = numbers.factor_gap.eta,
                     .factor_gap_lambda = numbers.factor_gap.lambda,
                     .client_steps = std::int64_t(numbers.steps),
                     .bytes_up = std::int64_t(numbers.bytes_up),
                     .bytes_down = std::int64_t(numbers.bytes_down),
                     .seconds = seconds};
  if (numbers.steps > 0) record.train_loss = if_finite(numbers.loss_sum / double(numbers.steps));
  record.window = numbers.window.begins;
  if (const WindowNumbers& window = numbers.window; window.ends) {
    record.window_end = {window.mean_moved, window.log_sd_moved, window.judged, window.left};
  }
  for (auto& [name, value] : scores) value = if_finite(value);
  record.scores = std::move(scores);
  return record;
}

double score_of(const RoundRecord& round, std::string_view name) {
  if (name == "train_loss") return round.train_loss;
  if (name == "moved") {
    return round.window_end ? if_finite(round.window_end->moved()) : kNotThere;
  }
  const auto found = std::ranges::find(round.scores, name, &Metrics::value_type::first);
  return found != round.scores.end() ? found->second : kNotThere;
}

bool is_whole(const History& history, std::int64_t rounds) {
  if (!history.header || !history.end || history.end->rounds != rounds) return false;
  if (std::int64_t(history.rounds.size()) != rounds) return false;
  for (std::int64_t i = 0; i < rounds; ++i) {
    if (history.rounds[std::size_t(i)].round != i) return false;
  }
  return true;
}

History read_history(const std::filesystem::path& log) {
  History history;
  std::vector<LogLine> lines = read_good_lines(log);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    auto& said = lines[i].said;
    history.end.reset();
    if (auto* header = std::get_if<RunHeader>(&said); header != nullptr && i == 0) {
      history.header = std::move(*header);
    } else if (auto* round = std::get_if<RoundRecord>(&said)) {
      history.rounds.push_back(std::move(*round));
    } else if (const auto* end = std::get_if<RunEndRecord>(&said)) {
      history.end = *end;
    }
  }
  return history;
}

HistorySoFar read_history_so_far(const std::filesystem::path& log) {
  HistorySoFar out;
  History& history = out.history;
  const std::string name = log.filename().string();
  LogLines read = read_log_lines(log);
  for (std::size_t i = 0; i < read.lines.size(); ++i) {
    auto& said = read.lines[i].said;
    const auto next = std::int64_t(history.rounds.size());
    auto* const round = std::get_if<RoundRecord>(&said);
    if (auto* header = std::get_if<RunHeader>(&said); header != nullptr && i == 0) {
      history.header = std::move(*header);
    } else if (round != nullptr && round->round == next) {
      history.rounds.push_back(std::move(*round));
    } else if (const auto* end = std::get_if<RunEndRecord>(&said)) {
      history.end = *end;
    } else {
      history.end.reset();
      out.fault =
          fmt::format("{}:{}: expected {}; shown up to there", name, i + 1,
                      i == 0 ? "a run's first line" : fmt::format("the line of round {}", next));
      return out;
    }
  }
  if (read.cut_off) {
    out.fault = fmt::format("{}:{}: cut off within the line", name, read.lines.size() + 1);
  }
  return out;
}

}  // namespace fedep
