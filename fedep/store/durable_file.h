// Files that survive a crash: replaced whole or not at all, and logs of whole lines.
//
//   replace_file("run/state.bin", bytes);
//   replace_file("run/state.bin", [&](const ByteSink& sink) { write_record(sections, sink); });
//   DurableLog log("run/log.jsonl");
//   log.append_line(R"({"kind":"round","round":1})");
//
// What the world refuses (full disk, read-only directory) is a RunError, which says which file, what
// was tried and why it failed. Files are read by message/read_file.h.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fedep/message/read_file.h"
#include "fedep/message/record.h"

namespace fedep {

// Writes a temporary ".<name>.tmp" in the same directory, brings it to the disk, renames it and
// brings the directory to the disk. If anything fails until the rename, what the writer throws
// included, the temporary is removed and an old file is as it was. A temporary that a killed
// process left is written over. Two that replace the same file take turns; where the file system has no
// locks each has a temporary of its own, ".<name>.<number>.tmp".
using FileWriter = std::function<void(const ByteSink&)>;
void replace_file(const std::filesystem::path& path, const FileWriter& writer);
void replace_file(const std::filesystem::path& path, std::span<const std::byte> bytes);

// Makes a folder, with those above it that are missing; each is brought to the disk in the one above
// it before the next, so that a power cut does not take it with all that is safe in it. One that is
// there already is brought there too: whoever made it may have died before.
void make_folder(const std::filesystem::path& path);

// A file of whole lines, which only grows. A last line without its end, which only a crash can
// leave, is cut off on opening. One log is written by one owner.
class DurableLog {
 public:
  explicit DurableLog(std::filesystem::path path);
  // The line comes without its end. It is written in one piece and survives the death of this
  // process; if it does not fit on the disk, nothing of it remains.
  void append_line(std::string_view line);
  // Brings all lines to the disk, so that they survive a power cut too.
  void sync();

 private:
  std::filesystem::path path_;
  FileDescriptor file_;
};

}  // namespace fedep
