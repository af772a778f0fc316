// Progress of a run on stderr: a bar that rewrites itself on a terminal, plain lines elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "fedep/round/run.h"

namespace fedep {

class Progress {
 public:
  explicit Progress(bool on_terminal);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(const RoundReport& report);
  void close();  // ends the line that the bar is in

 private:
  void show_bar(const RoundReport& report, double elapsed);
  void show_line(const RoundReport& report, double elapsed);
  void warn_of_refusals(const RoundReport& report);
  void warn_of_loss(const RoundReport& report);
  void warn_of_grid(const RoundReport& report);

  bool on_terminal_;
  bool bar_is_open_ = false;
  bool warned_of_refusals_ = false, warned_of_loss_ = false, warned_of_grid_ = false;
  double first_loss_ = 0;  // mean training loss of the first round shown that had steps,
  std::int64_t first_loss_round_ = 0;  // which is this one
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  double last_line_ = -1e9;        // seconds since start
  std::int64_t first_round_ = -1;  // the first one shown; a resumed run does not begin at 0
  std::string phase_;              // of the last one shown
  std::size_t steps_ = 0;
  Metrics metrics_;    // of the last round that evaluated
  std::string moved_;  // how far q moved in the last window
};

}  // namespace fedep
