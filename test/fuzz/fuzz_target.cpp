#include "test/fuzz/fuzz_target.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>

#include <fmt/format.h>

#include "fedep/message/error.h"
#include "fedep/message/record_layout.h"

namespace fedep {
namespace {

constexpr std::size_t kLongestLine = 2000;

void check_line(std::string_view text) {
  if (text.empty()) report_finding("a refusal without a word");
  if (text.find('\n') != text.npos) report_finding("not one line: " + std::string(text));
  if (text.size() > kLongestLine) report_finding(fmt::format("a line of {} bytes", text.size()));
}

}  // namespace

void expect_taken_or_refused(const std::function<void()>& read) {
  try {
    read();
  } catch (const InputError& error) {
    check_line(error.what());
  } catch (const RunError& error) {
    check_line(error.what());
  } catch (const std::exception& error) {
    report_finding(fmt::format("thrown as it is: {}", error.what()));
  }
}

void report_finding(std::string_view what) {
  fmt::print(stderr, "fedep_fuzz: {}\n", what);
  std::abort();
}

const std::filesystem::path& fuzz_folder() {
  static const std::filesystem::path folder = [] {
    const std::filesystem::path memory = "/dev/shm";
    const auto base =
        ::access(memory.c_str(), W_OK) == 0 ? memory : std::filesystem::temp_directory_path();
    const auto path = base / fmt::format("fedep-fuzz-{}", ::getpid());
    std::filesystem::create_directories(path);
    std::atexit([] {
      std::error_code ignored;
      std::filesystem::remove_all(fuzz_folder(), ignored);
    });
    return path;
  }();
  return folder;
}

std::filesystem::path fuzz_file(std::string_view name, FuzzInput bytes) {
  const std::filesystem::path path = fuzz_folder() / name;
  std::filesystem::create_directories(path.parent_path());
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()), std::streamsize(bytes.size()));
  out.close();
  if (!out) report_finding("cannot write " + path.string());
  return path;
}

std::string with_right_checksums(FuzzInput record) {
  using namespace record_layout;
  std::string out(text_of(record));
  std::uint64_t checksum = 0;
  std::size_t at = 0;
  // Writes the checksum of the next `covered` bytes behind them; false if there is no room.
  const auto put = [&](std::size_t covered) {
    if (covered > out.size() || out.size() - covered < at + kChecksumSize) return false;
    checksum = chained(std::as_bytes(std::span(out).subspan(at, covered)), checksum);
    std::memcpy(out.data() + at + covered, &checksum, kChecksumSize);
    at += covered + kChecksumSize;
    return true;
  };
  if (!put(kPreambleSize - kChecksumSize)) return out;
  while (out.size() - at >= kSectionSize) {
    std::uint32_t type = 0;
    std::uint64_t count = 0;
    std::memcpy(&type, out.data() + at + kRecordMaxName, 4);
    std::memcpy(&count, out.data() + at + kRecordMaxName + 8, 8);
    put(kSectionSize - kChecksumSize);
    if (type < 1 || type > kTypeCount || count > out.size()) break;
    std::size_t left = std::size_t(count) * kTypeSizes[type - 1];
    while (left > 0) {
      const std::size_t chunk = std::min(left, kRecordChunkBytes);
      if (!put(chunk)) return out;
      left -= chunk;
    }
  }
  return out;
}

}  // namespace fedep
