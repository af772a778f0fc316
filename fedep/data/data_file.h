// Reading the files of a data set: what is missing, too short or packed beyond reason is refused in
// one line that says what to do.
//
//   const auto bytes = read_data_file("cifar100", folder / "train.bin");
//   check_data_size("cifar100", folder / "train.bin", bytes.size(), 50000 * 3074);
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fedep/message/read_file.h"

struct gzFile_s;  // zlib's

namespace fedep {

// "cifar100: DIR/train.bin is missing; …", with the ways to bring or name the data.
std::string missing_data(std::string_view dataset, const std::filesystem::path& path);
void check_data_exists(std::string_view dataset, const std::filesystem::path& path);
void check_data_folder(std::string_view dataset, const std::filesystem::path& path);
// Paths of all that a folder has, sorted.
std::vector<std::filesystem::path> files_in(std::string_view dataset,
                                            const std::filesystem::path& folder);

// Opens a regular file. Throws InputError, with what to do, if there is none.
FileDescriptor open_data_file(std::string_view dataset, const std::filesystem::path& path);

// What a file may become in memory when its contents are packed, repeated or only claimed: 64 MiB,
// and 100 bytes for each of its own. A bomb of 6 MB would become 8 GB; real data become ten times
// as large.
class UnpackBudget {
 public:
  static constexpr std::uint64_t kFree = std::uint64_t(64) << 20;
  static constexpr std::uint64_t kMostRatio = 100;

  UnpackBudget(std::string_view dataset, const std::filesystem::path& path, std::uint64_t packed);

  std::uint64_t left() const { return most_ - taken_; }
  // Call it before the bytes are asked for. Throws InputError if that is more than is left.
  void take(std::uint64_t bytes);

 private:
  std::string dataset_;
  std::filesystem::path path_;
  std::uint64_t packed_;
  std::uint64_t most_;
  std::uint64_t taken_ = 0;
};

// A file that gzip packed, or a plain one, from front to back.
class GzipFile {
 public:
  GzipFile(std::string_view dataset, const std::filesystem::path& path);
  ~GzipFile();
  GzipFile(const GzipFile&) = delete;
  GzipFile& operator=(const GzipFile&) = delete;

  // Fills the span, or less where the file ends; gives how much. Throws InputError for what is no
  // whole gzip file.
  std::size_t read(std::span<char> into);

 private:
  std::string dataset_;
  std::filesystem::path path_;
  UnpackBudget budget_;
  gzFile_s* file_ = nullptr;
};

// The whole file. Throws InputError if it is missing, RunError if it cannot be read.
std::vector<std::uint8_t> read_data_file(std::string_view dataset,
                                         const std::filesystem::path& path);
// As above; a file that gzip packed is unpacked on the way.
std::vector<std::uint8_t> read_gzip_file(std::string_view dataset,
                                         const std::filesystem::path& path);
std::string read_data_text(std::string_view dataset, const std::filesystem::path& path);

// Throws InputError unless both are equal.
void check_data_size(std::string_view dataset, const std::filesystem::path& path,
                     std::uint64_t came, std::uint64_t expected);

// Little-endian numbers, from bytes of which there must be enough.
std::uint16_t little_u16(const std::uint8_t* bytes);
std::int32_t little_i32(const std::uint8_t* bytes);

}  // namespace fedep
