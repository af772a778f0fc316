// Files as they are read, everywhere: only regular ones, and only as much as memory holds.
//
//   const FileDescriptor file = open_file("run/log.jsonl");
//   const std::vector<std::byte> recipe = read_file("recipe.toml", kMostRecipeBytes);
//
// A device, a pipe or a socket is refused before a byte is asked of it, also behind a link: one in a
// folder that somebody else made could block a program for ever, or never end. A link to a regular
// file is followed. What is not there to read is an InputError, what the world refuses a RunError.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "fedep/message/record.h"

namespace fedep {

// An open file, closed when this goes.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept;
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  ~FileDescriptor();

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  // Whoever takes it closes it.
  int release();

 private:
  int fd_ = -1;
};

// Opens for reading. The one place that does.
FileDescriptor open_file(const std::filesystem::path& path);
std::uint64_t size_of(const FileDescriptor& file, const std::filesystem::path& path);

// Reads until the span is full or the file ends; gives how much was read.
std::size_t read_some(const FileDescriptor& file, const std::filesystem::path& path,
                      std::span<std::byte> into);

// The whole file; throws InputError if it has more than `most` bytes.
std::vector<std::byte> read_file(const std::filesystem::path& path, std::uint64_t most);
// The same, as large as this machine's memory.
std::vector<std::byte> read_file(const std::filesystem::path& path);
// The file from front to back, in chunks of at most 1 MiB.
void read_file_chunks(const std::filesystem::path& path, const ByteSink& sink);

// Bytes of memory that this machine has.
std::uint64_t machine_memory();

}  // namespace fedep
