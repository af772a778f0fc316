// The writer of a run's log.jsonl, whose lines store/history.h describes and reads.
//
//   begin_log(path, header);
//   RunLog log(path);
//   log.write(record_of(41, "fed_ep", numbers, seconds, scores));
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "fedep/store/durable_file.h"
#include "fedep/store/history.h"

namespace fedep {

// A log of this header and of rounds that were played elsewhere, in place of any that is there.
void begin_log(const std::filesystem::path& path, const RunHeader& header,
               std::span<const RoundRecord> rounds = {});

// Keeps the first line and those of rounds before `round`, byte for byte, and gives back what they
// say; the rest will be played again. Throws InputError if the log has no header or lacks one of
// those rounds.
History cut_log(const std::filesystem::path& path, std::int64_t round);

// Appends to a log that was begun or cut.
class RunLog {
 public:
  explicit RunLog(const std::filesystem::path& path) : lines_(path) {}

  void write(const RoundRecord& round);
  void write(const RunEndRecord& end);

 private:
  DurableLog lines_;
};

}  // namespace fedep
