// A run's rounds as steps of a TensorBoard event file in its directory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>

#include "fedep/round/run.h"
#include "fedep/store/log/history.h"
#include "fedep/store/log/tensorboard.h"

namespace fedep {

// The event file of this start of the run, made when its first round is over.
class RunEvents {
 public:
  explicit RunEvents(std::filesystem::path directory);

  void write(const RoundReport& report);
  // Rounds that were played elsewhere.
  void write(std::span<const RoundRecord> rounds);

 private:
  void write(std::int64_t round, const Metrics& scalars);

  std::filesystem::path directory_;
  std::optional<EventFile> file_;
};

}  // namespace fedep
