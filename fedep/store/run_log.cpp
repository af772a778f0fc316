#include "fedep/store/run_log.h"

#include <string>
#include <utility>

#include "fedep/message/check.h"
#include "fedep/store/log_lines.h"

namespace fedep {

void begin_log(const std::filesystem::path& path, const RunHeader& header,
               std::span<const RoundRecord> rounds) {
  std::string text = line_of(header) + "\n";
  for (const RoundRecord& round : rounds) text += line_of(round) + "\n";
  replace_file(path, std::as_bytes(std::span(text)));
}

History cut_log(const std::filesystem::path& path, std::int64_t round) {
  History kept;
  std::string text;
  for (LogLine& line : read_good_lines(path)) {
    auto* const header = std::get_if<RunHeader>(&line.said);
    auto* const record = std::get_if<RoundRecord>(&line.said);
    if (header != nullptr && text.empty()) {
      kept.header = std::move(*header);
    } else if (record != nullptr && record->round >= 0 && record->round < round) {
      kept.rounds.push_back(std::move(*record));
    } else {
      continue;
    }
    text += line.text + "\n";
  }
  if (!kept.header) {
    throw InputError(
        fmt::format("{}: first line must be a run's header, but is not", path.string()));
  }
  if (std::int64_t(kept.rounds.size()) != round) {
    throw InputError(
        fmt::format("{}: log must hold the {} rounds before its checkpoint, but holds {}",
                    path.string(), round, kept.rounds.size()));
  }
  replace_file(path, std::as_bytes(std::span(text)));
  return kept;
}

void RunLog::write(const RoundRecord& round) { lines_.append_line(line_of(round)); }

void RunLog::write(const RunEndRecord& end) { lines_.append_line(line_of(end)); }

}  // namespace fedep
