// The writer of a run's log.jsonl, whose lines store/log/history.h describes and reads.
//
//   RunLog log(path, begin_log(path, header));
//   log.write(record_of(41, "fed_ep", numbers, seconds, scores));
//   log.sync();                                   // now a checkpoint may rely on these rounds
//
//   const LogPart part = read_log_part(path, 42);
//   RunLog(path, cut_log(path, part));            // round 42 comes next
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "fedep/store/durable_file.h"
#include "fedep/store/log/history.h"
#include "fedep/store/log/log_mark.h"

namespace fedep {

// A log of this header and of rounds that were played elsewhere, in place of any that is there.
LogMark begin_log(const std::filesystem::path& path, const RunHeader& header,
                  std::span<const RoundRecord> rounds = {});

// A log's first line and its rounds 0, 1, … until some round.
struct LogPart {
  History history;             // no end
  std::vector<LogMark> marks;  // before each of its rounds, and behind the last
  std::string text;            // byte for byte
};
// The rounds before `round`; whatever follows, a power cut may have left it, and it does not matter.
// Throws InputError if the log has no header or lacks one of those rounds.
LogPart read_log_part(const std::filesystem::path& path, std::int64_t round);
// Nothing else stays in the log: the rest will be played again.
LogMark cut_log(const std::filesystem::path& path, const LogPart& part);

// Appends to a log that was begun or cut.
class RunLog {
 public:
  RunLog(const std::filesystem::path& path, LogMark mark) : lines_(path), mark_(mark) {}

  void write(const RoundRecord& round);
  void write(const RunEndRecord& end);
  // Brings what was written to the disk.
  void sync() { lines_.sync(); }
  LogMark mark() const { return mark_; }

 private:
  DurableLog lines_;
  LogMark mark_;
};

}  // namespace fedep
