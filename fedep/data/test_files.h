// Files that tests make (message/test_folder.h), and the real data where they are.
//
//   const auto data = real_data("cifar100/train.bin");
//   if (data.empty()) GTEST_SKIP() << kNoRealData;
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

#include "fedep/message/test_folder.h"

namespace fedep {

inline constexpr const char* kNoRealData =
    "needs the real data: run tools/unpack_data and set FEDEP_DATA to the folder it names";

// The folder of the unpacked data sets if it has this file, else nothing.
inline std::filesystem::path real_data(const std::string& file) {
  const char* const given = std::getenv("FEDEP_DATA");
  std::filesystem::path folder = given ? given : "";
#ifdef FEDEP_SHARED_DATA
  if (folder.empty()) folder = FEDEP_SHARED_DATA;
#endif
  std::error_code ignored;
  if (folder.empty() || !std::filesystem::exists(folder / file, ignored)) return {};
  return folder;
}

}  // namespace fedep
