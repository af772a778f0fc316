#include "app/run/live_report.h"

#include <algorithm>
#include <set>
#include <vector>

#include "app/report/report_build.h"
#include "fedep/message/error.h"
#include "fedep/page/report.h"

namespace fedep {
namespace {

namespace fs = std::filesystem;

// A run that is busy should not read gigabytes for a picture.
constexpr std::uintmax_t kLargestLiveCheckpoint = std::uintmax_t(1) << 28;

std::string checkpoint_names(const fs::path& run) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(run)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("checkpoint-") && entry.path().extension() == ".safetensors") {
      names.insert(name);
    }
  }
  std::string all;
  for (const std::string& name : names) all += name + "/";
  return all;
}

}  // namespace

Json LiveReport::json() {
  const std::lock_guard lock(mutex_);
  try {
    RunRecord run = read_run_record(run_, "", 0);
    if (run.status != RunStatus::finished) run.status = RunStatus::running;
    if (std::string names = checkpoint_names(run_); names != checkpoints_) {
      checkpoints_ = std::move(names);
      posterior_ = read_posterior(run_, run.recipe, kLargestLiveCheckpoint);
    }
    run.posterior = posterior_;
    // A line that is being written is no fault.
    run.faults.clear();
    return build_report(std::vector{std::move(run)}, {.live = true});
  } catch (const std::exception& error) {
    // The directory is not there yet, or a checkpoint went while it was read.
    return build_report({},
                        {.notices = {std::string("not begun yet: ") + error.what()}, .live = true});
  }
}

std::string LiveReport::page() { return report_page(json()); }

std::string LiveReport::data() {
  return json().dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace fedep
