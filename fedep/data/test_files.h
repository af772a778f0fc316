// Files that tests make, and the real data where they are.
//
//   const TemporaryFolder folder;
//   folder.write("labels.u8", {0, 61});
//   const auto data = real_data("cifar100/train.bin");
//   if (data.empty()) GTEST_SKIP() << kNoRealData;
#pragma once

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace fedep {

// A new folder, gone with this object.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "fedep-test-XXXXXX").string();
    if (!mkdtemp(name.data())) throw std::runtime_error("cannot make " + name);
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

  void write(const std::string& name, std::span<const std::uint8_t> bytes) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream out(path_ / name, std::ios::binary);
    out.write(reinterpret_cast<const char*>(bytes.data()), std::streamsize(bytes.size()));
  }
  void write(const std::string& name, const std::vector<std::uint8_t>& bytes) const {
    write(name, std::span(bytes));
  }
  void write(const std::string& name, std::string_view text) const {
    write(name, std::vector<std::uint8_t>(text.begin(), text.end()));
  }

 private:
  std::filesystem::path path_;
};

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

// What `action` throws as an E, or nothing.
template <class E, class Action>
std::string message_of(const Action& action) {
  try {
    action();
  } catch (const E& error) {
    return error.what();
  }
  return "";
}

}  // namespace fedep
