// The page of one run while it goes on, made anew from its directory whenever somebody asks.
//
//   LiveReport report("run/first");
//   report.page();   report.data();
//
// May be asked from several threads.
#pragma once

#include <filesystem>
#include <mutex>
#include <optional>
#include <string>

#include "fedep/page/run_record.h"

namespace fedep {

class LiveReport {
 public:
  explicit LiveReport(std::filesystem::path run) : run_(std::move(run)) {}

  std::string page();  // HTML
  std::string data();  // JSON, for the page to draw again

 private:
  Json json();

  std::filesystem::path run_;
  std::mutex mutex_;  // of what follows
  std::string checkpoints_;
  std::optional<PosteriorSpread> posterior_;  // of those checkpoints; reading one takes a while
};

}  // namespace fedep
