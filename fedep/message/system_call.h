// Calls of the operating system on files: again where a signal interrupted, and one line where they
// fail.
#pragma once

#include <cerrno>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "fedep/message/error.h"

namespace fedep {

// "run/log.jsonl: cannot read: No such file or directory"
inline std::string failure(const std::filesystem::path& path, std::string_view action, int error) {
  return fmt::format("{}: cannot {}: {}", path.string(), action,
                     std::generic_category().message(error));
}

// Of what errno says.
[[noreturn]] inline void throw_run_error(const std::filesystem::path& path,
                                         std::string_view action) {
  const int error = errno;
  throw RunError(failure(path, action, error));
}

template <class Call>
auto uninterrupted(Call call) {
  auto result = call();
  while (result == -1 && errno == EINTR) result = call();
  return result;
}

}  // namespace fedep
