// Fuzz targets: every reader of files that somebody else may have made. A target gets any bytes; the
// reader must take or refuse them, and refuse with one line.
//
//   build-asan/bin/fedep_fuzz recipe -runs=1000000 test/fuzz/seed/recipe
//
// A row of fuzz_targets() is a target. fuzz_driver.cpp changes seeds at random, the same way every
// time; with clang the same entry point (fuzz_entry.cpp) is libFuzzer's, which is told the target
// by FEDEP_FUZZ_TARGET.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace fedep {

using FuzzInput = std::span<const std::uint8_t>;

struct FuzzTarget {
  std::string_view name;
  std::string_view about;
  void (*run)(FuzzInput input);
};

std::span<const FuzzTarget> fuzz_targets();

inline std::string_view text_of(FuzzInput input) {
  return {reinterpret_cast<const char*>(input.data()), input.size()};
}

// Runs `read`. A refusal is an InputError or a RunError of one line; anything else that is thrown,
// and a line that is none or longer than a screen, ends the program.
void expect_taken_or_refused(const std::function<void()>& read);

// Ends the program with this line.
[[noreturn]] void report_finding(std::string_view what);

// A folder in memory, the same for all inputs of a process.
const std::filesystem::path& fuzz_folder();
// A file there with these bytes; gives its path.
std::filesystem::path fuzz_file(std::string_view name, FuzzInput bytes);

// Bytes of a record (message/record.h) with the checksums that its headers and data should have, as
// far as they can be followed: what remains to refuse it is what it says.
std::string with_right_checksums(FuzzInput record);

}  // namespace fedep
