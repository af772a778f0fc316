#include "fedep/data/data_file.h"

#include <algorithm>
#include <array>
#include <system_error>

#include <fmt/format.h>
#include <zlib.h>

#include "fedep/message/error.h"

namespace fedep {
namespace fs = std::filesystem;

namespace {

// What `tools/unpack_data` brings. Files of other data sets are the user's own.
constexpr std::array<std::string_view, 5> kPacked{"cifar100", "eicu", "femnist", "heart_disease",
                                                  "stackoverflow"};

}  // namespace

std::string missing_data(std::string_view dataset, const fs::path& path) {
  const bool is_packed = std::ranges::find(kPacked, dataset) != kPacked.end();
  return fmt::format(
      "{}: {} is missing; {}--data DIR or $FEDEP_DATA names the folder that data.path is in",
      dataset, path.string(), is_packed ? "`tools/unpack_data` unpacks the data, " : "");
}

void check_data_exists(std::string_view dataset, const fs::path& path) {
  std::error_code ignored;
  if (fs::exists(path, ignored)) return;
  // data.path may name a file where a folder is expected.
  for (fs::path above = path.parent_path(); !above.empty(); above = above.parent_path()) {
    if (fs::is_regular_file(above, ignored)) check_data_folder(dataset, above);
    if (above == above.parent_path()) break;
  }
  throw InputError(missing_data(dataset, path));
}

void check_data_folder(std::string_view dataset, const fs::path& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) check_data_exists(dataset, path);
  if (fs::is_directory(path, ignored)) return;
  throw InputError(
      fmt::format("{}: data.path must name a folder, but {} is a file", dataset, path.string()));
}

std::vector<fs::path> files_in(std::string_view dataset, const fs::path& folder) {
  check_data_folder(dataset, folder);
  std::error_code error;
  std::vector<fs::path> files;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    files.push_back(at->path());
  }
  if (error) {
    throw RunError(
        fmt::format("{}: cannot read folder {}: {}", dataset, folder.string(), error.message()));
  }
  std::sort(files.begin(), files.end());
  return files;
}

FileDescriptor open_data_file(std::string_view dataset, const fs::path& path) {
  check_data_exists(dataset, path);
  if (fs::is_directory(path)) {
    throw InputError(fmt::format("{}: {} must be a file, but is a folder", dataset, path.string()));
  }
  try {
    return open_file(path);
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: {}", dataset, error.what()));
  }
}

std::vector<std::uint8_t> read_data_file(std::string_view dataset, const fs::path& path) {
  const FileDescriptor file = open_data_file(dataset, path);
  const std::uint64_t size = size_of(file, path);
  if (size > machine_memory()) {
    throw InputError(fmt::format("{}: {} must fit into memory, {} bytes, but has {}", dataset,
                                 path.string(), machine_memory(), size));
  }
  std::vector<std::uint8_t> bytes(size);
  if (read_some(file, path, std::as_writable_bytes(std::span(bytes))) != bytes.size()) {
    throw RunError(fmt::format("{}: cannot read {}", dataset, path.string()));
  }
  return bytes;
}

UnpackBudget::UnpackBudget(std::string_view dataset, const fs::path& path, std::uint64_t packed)
    : dataset_(dataset), path_(path), packed_(packed), most_(kFree + kMostRatio * packed) {}

void UnpackBudget::take(std::uint64_t bytes) {
  if (bytes <= most_ - taken_) {
    taken_ += bytes;
    return;
  }
  throw InputError(
      fmt::format("{}: {}, which has {} bytes, must hold at most {} unpacked, but holds more; if "
                  "it is sound, unpack it first",
                  dataset_, path_.string(), packed_, most_));
}

GzipFile::GzipFile(std::string_view dataset, const fs::path& path)
    : dataset_(dataset), path_(path), budget_(dataset, path, 0) {
  FileDescriptor file = open_data_file(dataset, path);
  budget_ = UnpackBudget(dataset, path, size_of(file, path));
  file_ = gzdopen(file.get(), "rb");
  if (file_ == nullptr) throw RunError(fmt::format("{}: cannot read {}", dataset, path.string()));
  file.release();  // gzclose closes it
  gzbuffer(file_, 1u << 17);
}

GzipFile::~GzipFile() { gzclose(file_); }

std::size_t GzipFile::read(std::span<char> into) {
  std::size_t done = 0;
  while (done < into.size()) {
    constexpr std::size_t kMost = std::size_t(1) << 30;
    const auto piece = unsigned(std::min(kMost, into.size() - done));
    const int came = gzread(file_, into.data() + done, piece);
    // A packed file that was cut off ends with Z_BUF_ERROR, not with an error of gzread.
    int state = Z_OK;
    const char* why = gzerror(file_, &state);
    if (came < 0 || (came == 0 && state == Z_BUF_ERROR)) {
      throw InputError(
          fmt::format("{}: {} must be a whole gzip file, but: {}", dataset_, path_.string(), why));
    }
    if (came == 0) break;
    budget_.take(std::uint64_t(came));
    done += std::size_t(came);
  }
  return done;
}

std::vector<std::uint8_t> read_gzip_file(std::string_view dataset, const fs::path& path) {
  GzipFile file(dataset, path);
  std::vector<std::uint8_t> bytes;
  std::size_t came = 0;
  do {
    constexpr std::size_t kPiece = std::size_t(1) << 16;
    const std::size_t before = bytes.size();
    bytes.resize(before + kPiece);
    came = file.read({reinterpret_cast<char*>(bytes.data()) + before, kPiece});
    bytes.resize(before + came);
  } while (came > 0);
  return bytes;
}

std::string read_data_text(std::string_view dataset, const fs::path& path) {
  const std::vector<std::uint8_t> bytes = read_data_file(dataset, path);
  return {bytes.begin(), bytes.end()};
}

void check_data_size(std::string_view dataset, const fs::path& path, std::uint64_t came,
                     std::uint64_t expected) {
  if (came != expected) {
    throw InputError(fmt::format("{}: {} must have {} bytes, but has {}", dataset, path.string(),
                                 expected, came));
  }
}

std::uint16_t little_u16(const std::uint8_t* bytes) {
  return std::uint16_t(bytes[0] | bytes[1] << 8);
}

std::int32_t little_i32(const std::uint8_t* bytes) {
  return std::int32_t(std::uint32_t(bytes[0]) | std::uint32_t(bytes[1]) << 8 |
                      std::uint32_t(bytes[2]) << 16 | std::uint32_t(bytes[3]) << 24);
}

}  // namespace fedep
