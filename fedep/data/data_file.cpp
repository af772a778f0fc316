#include "fedep/data/data_file.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <memory>
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
  if (!fs::exists(path, ignored)) throw InputError(missing_data(dataset, path));
}

std::vector<std::uint8_t> read_data_file(std::string_view dataset, const fs::path& path) {
  check_data_exists(dataset, path);
  if (fs::is_directory(path)) {
    throw InputError(fmt::format("{}: {} must be a file, but is a folder", dataset, path.string()));
  }
  std::ifstream in(path, std::ios::binary);
  std::error_code error;
  std::vector<std::uint8_t> bytes(in ? fs::file_size(path, error) : 0);
  in.read(reinterpret_cast<char*>(bytes.data()), std::streamsize(bytes.size()));
  if (!in || error) {
    throw RunError(fmt::format("{}: cannot read {}", dataset, path.string()));
  }
  return bytes;
}

std::vector<std::uint8_t> read_gzip_file(std::string_view dataset, const fs::path& path) {
  check_data_exists(dataset, path);
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> in(gzopen(path.c_str(), "rb"), gzclose);
  if (!in) throw RunError(fmt::format("{}: cannot read {}", dataset, path.string()));
  constexpr unsigned kPiece = 1u << 20;
  std::vector<std::uint8_t> bytes;
  int came = 0;
  do {
    const std::size_t before = bytes.size();
    bytes.resize(before + kPiece);
    came = gzread(in.get(), bytes.data() + before, kPiece);
    bytes.resize(before + std::size_t(came > 0 ? came : 0));
  } while (came > 0);
  // A packed file that was cut off ends with Z_BUF_ERROR, not with an error of gzread.
  int state = Z_OK;
  const char* why = gzerror(in.get(), &state);
  if (came < 0 || state == Z_BUF_ERROR) {
    throw InputError(
        fmt::format("{}: {} must be a whole gzip file, but: {}", dataset, path.string(), why));
  }
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
