#include "app/run/progress.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "app/output.h"

namespace fedep {
namespace {

constexpr double kSecondsBetweenLines = 5;
constexpr int kBarWidth = 24;
constexpr double kMuchLoss = 10;  // times that of the first round shown

std::string metrics_text(const Metrics& metrics) {
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(metrics.size(), 2); ++i) {
    const auto& [name, value] = metrics[i];
    if (!std::isnan(value)) text += fmt::format("  {} {:.4g}", name, value);
  }
  // The first of them once more, of the server's average.
  for (const auto& [name, value] : metrics) {
    const bool is_it = name == metrics[0].first + "_average";
    if (is_it && !std::isnan(value)) text += fmt::format("  {} {:.4g}", name, value);
  }
  return text;
}

std::string moved_text(const WindowNumbers& window) {
  const double moved = std::max(window.mean_moved, window.log_sd_moved);
  return std::isfinite(moved) ? fmt::format("  moved {:.2g} sd", moved) : "  improper";
}

std::string duration(double seconds) {
  const long s = long(seconds);
  return s < 3600 ? fmt::format("{}:{:02}", s / 60, s % 60)
                  : fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

}  // namespace

Progress::Progress(bool on_terminal) : on_terminal_(on_terminal) {}

Progress::~Progress() { close(); }

void Progress::close() {
  if (bar_is_open_) std::fputc('\n', stderr);
  bar_is_open_ = false;
}

void Progress::show(const RoundReport& report) {
  if (first_round_ < 0) first_round_ = report.round;
  if (report.numbers.outside_grid > 0) warn_of_refusals(report);
  if (report.numbers.steps > 0) warn_of_loss(report);
  // Later, clients that have converged send next to nothing, and nothing is wrong.
  if (std::exchange(phase_, report.phase) != report.phase) {
    moved_.clear();
    if (report.numbers.rounded_away > 0) warn_of_grid(report);
  }
  steps_ += report.numbers.steps;
  if (!report.metrics.empty()) metrics_ = report.metrics;
  if (report.numbers.window.ends) moved_ = moved_text(report.numbers.window);
  const double elapsed =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  if (on_terminal_) {
    show_bar(report, elapsed);
  } else if (elapsed - last_line_ >= kSecondsBetweenLines || report.last) {
    show_line(report, elapsed);
    last_line_ = elapsed;
  }
}

void Progress::warn_of_refusals(const RoundReport& report) {
  if (std::exchange(warned_of_refusals_, true)) return;
  close();
  say("round {}: answers of {} of {} clients refused: they are not finite, or far larger "
      "than answers were. Clients whose steps diverge do that: docs/stability.md\n",
      report.round + 1, report.numbers.outside_grid, report.numbers.asked);
}

// Clients that diverge slowly send answers that are finite, and taken.
void Progress::warn_of_loss(const RoundReport& report) {
  const double loss = report.numbers.loss_sum / double(report.numbers.steps);
  if (first_loss_ == 0) {
    first_loss_ = loss;
    first_loss_round_ = report.round;
  }
  if (loss <= kMuchLoss * first_loss_ || std::isnan(loss) || std::exchange(warned_of_loss_, true)) {
    return;
  }
  close();
  say("round {}: clients' training loss is {:.4g}, and was {:.4g} in round {}: their steps "
      "diverge: docs/stability.md\n",
      report.round + 1, loss, first_loss_, first_loss_round_ + 1);
}

void Progress::warn_of_grid(const RoundReport& report) {
  if (std::exchange(warned_of_grid_, true)) return;
  close();
  say("round {}: what {} of {} clients sent was lost in rounding: phase.clip is far larger "
      "than their deltas, and the grid of the sum follows from it (server.grid_bits). A "
      "smaller clip, or none (0), lets them learn\n",
      report.round + 1, report.numbers.rounded_away, report.numbers.asked);
}

void Progress::show_bar(const RoundReport& report, double elapsed) {
  const std::int64_t done = report.round + 1;
  const int filled = int(kBarWidth * done / report.rounds);
  const double per_round = elapsed / double(done - first_round_);
  std::string bar;
  for (int i = 0; i < kBarWidth; ++i) bar += i < filled ? "█" : "░";
  say_to_terminal(fmt::format("\r{} {}/{} {}{}{}  {:.0f} client-steps/s  {} left\x1b[K", bar, done,
                              report.rounds, report.phase, metrics_text(metrics_), moved_,
                              double(steps_) / elapsed,
                              duration(per_round * double(report.rounds - done))));
  bar_is_open_ = true;
}

void Progress::show_line(const RoundReport& report, double elapsed) {
  const RoundNumbers& n = report.numbers;
  say("round {}/{}  {}{}{}{}  {:.0f} client-steps/s  {}\n", report.round + 1, report.rounds,
      report.phase, metrics_text(metrics_), moved_,
      n.outside_grid > 0 ? fmt::format("  {} of {} refused", n.outside_grid, n.asked) : "",
      double(steps_) / elapsed, duration(elapsed));
}

}  // namespace fedep
