// What the page of `--watch` shows of a run while it goes on. The run tells it of every round, so
// nobody reads the log, and a page costs the same after a million rounds as after two thousand.
//
//   LiveReport report("run/first");
//   report.begin(recipe, header);        // the run's thread
//   report.follow(history.rounds);       // after every round
//   report.finish();
//   report.data();                       // another thread: the page's JSON
#pragma once

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "fedep/page/report/run_record.h"
#include "fedep/page/report/thinned_rounds.h"

namespace fedep {

class LiveReport {
 public:
  explicit LiveReport(std::filesystem::path run) : run_(std::move(run)) {}

  void begin(const Recipe& recipe, const RunHeader& header);
  // All rounds so far; those that it knows are passed over.
  void follow(std::span<const RoundRecord> rounds);
  // The run's last round is over, and its evaluation.json written.
  void finish(const Verdict& verdict = {});

  // JSON that may stand in a script element. Asked by one thread at a time.
  std::string data();

 private:
  std::optional<RunRecord> record_so_far() const;
  void count_participation(RunRecord& run);
  void read_posterior_of(RunRecord& run);

  const std::filesystem::path run_;

  mutable std::mutex mutex_;  // of what follows, until the empty line
  std::optional<Recipe> recipe_;
  RunHeader header_;
  ThinnedRounds rounds_;
  RoundCounters counters_;
  bool finished_ = false;
  Verdict verdict_;  // once it is

  // Of data() alone:
  std::optional<Participation> participation_;
  std::string checkpoints_;
  std::optional<PosteriorSpread> posterior_;  // of those checkpoints; reading one takes a while
};

}  // namespace fedep
