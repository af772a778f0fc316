#include "fedep/store/log/run_log.h"

#include <utility>

#include "fedep/message/check.h"
#include "fedep/store/log/log_lines.h"

namespace fedep {

LogMark begin_log(const std::filesystem::path& path, const RunHeader& header,
                  std::span<const RoundRecord> rounds) {
  LogMark mark = mark_of(header);
  std::string text = line_of(header) + "\n";
  for (const RoundRecord& round : rounds) {
    const std::string line = line_of(round);
    mark = mark_after(mark, line);
    text += line + "\n";
  }
  replace_file(path, std::as_bytes(std::span(text)));
  return mark;
}

LogPart read_log_part(const std::filesystem::path& path, std::int64_t round) {
  LogPart part;
  std::vector<RoundRecord>& rounds = part.history.rounds;
  std::size_t number = 0;
  for (LogLine& line : read_log_lines(path).lines) {
    ++number;
    if (part.history.header && std::int64_t(rounds.size()) == round) break;
    if (std::holds_alternative<BadLine>(line.said)) {
      throw InputError(fmt::format("{}:{}: line must be a JSON object with a kind, but is not",
                                   path.string(), number));
    }
    auto* const header = std::get_if<RunHeader>(&line.said);
    auto* const record = std::get_if<RoundRecord>(&line.said);
    if (header != nullptr && number == 1) {
      part.marks.push_back(mark_of(*header));
      part.history.header = std::move(*header);
    } else if (record != nullptr && part.history.header &&
               record->round == std::int64_t(rounds.size())) {
      part.marks.push_back(mark_after(part.marks.back(), line.text));
      rounds.push_back(std::move(*record));
    } else {
      continue;
    }
    part.text += line.text + "\n";
  }
  if (!part.history.header) {
    throw InputError(
        fmt::format("{}: first line must be a run's header, but is not", path.string()));
  }
  if (std::int64_t(rounds.size()) != round) {
    throw InputError(
        fmt::format("{}: log must hold the {} rounds before its checkpoint, but holds {}",
                    path.string(), round, rounds.size()));
  }
  return part;
}

LogMark cut_log(const std::filesystem::path& path, const LogPart& part) {
  replace_file(path, std::as_bytes(std::span(part.text)));
  return part.marks.back();
}

void RunLog::write(const RoundRecord& round) {
  const std::string line = line_of(round);
  lines_.append_line(line);
  mark_ = mark_after(mark_, line);
}

void RunLog::write(const RunEndRecord& end) { lines_.append_line(line_of(end)); }

}  // namespace fedep
