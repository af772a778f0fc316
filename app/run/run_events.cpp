#include "app/run/run_events.h"

#include <chrono>
#include <utility>

namespace fedep {
namespace {

double unix_seconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

}  // namespace

RunEvents::RunEvents(std::filesystem::path directory) : directory_(std::move(directory)) {}

void RunEvents::write(const RoundReport& report) {
  const RoundRecord record =
      record_of(report.round, report.phase, report.numbers, report.seconds, report.metrics);
  write({&record, 1});
}

void RunEvents::write(std::span<const RoundRecord> rounds) {
  for (const RoundRecord& round : rounds) {
    Metrics scalars = round.scores;
    scalars.emplace_back("train_loss", round.train_loss);
    scalars.emplace_back("seconds", round.seconds);
    write(round.round, scalars);
  }
}

void RunEvents::write(std::int64_t round, const Metrics& scalars) {
  const std::int64_t step = round + 1;  // completed rounds
  const double now = unix_seconds();
  if (!file_) file_.emplace(directory_, step, now);
  file_->write(step, now, scalars);
}

}  // namespace fedep
