#include "app/failure.h"

#include <filesystem>
#include <new>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fedep/message/error.h"

namespace fedep {
namespace {

using testing::HasSubstr;

template <class E>
Failure of(E error) {
  return failure_of(std::make_exception_ptr(std::move(error)));
}

TEST(Failure, IsTheMessageAndTheExitCodeOfItsKind) {
  EXPECT_EQ(of(InputError("a.toml:3: no")), (Failure{"a.toml:3: no", 2}));
  EXPECT_EQ(of(RunError("disk is full")), (Failure{"disk is full", 1}));
}

TEST(Failure, OfMemorySaysMemory) {
  EXPECT_THAT(of(std::bad_alloc()).line, HasSubstr("memory"));
  EXPECT_THAT(of(std::length_error("vector::_M_default_append")).line, HasSubstr("memory"));
}

TEST(Failure, NamesTheFileThatTheSystemRefused) {
  const std::filesystem::filesystem_error error("cannot", "/run/x",
                                                std::make_error_code(std::errc::permission_denied));
  EXPECT_EQ(of(error), (Failure{"/run/x: Permission denied", 1}));
}

TEST(Failure, IsOneLineOfWhateverWasThrown) {
  const std::vector<std::exception_ptr> all = {
      std::make_exception_ptr(InputError("two\nlines\x1b[2J\n")),
      std::make_exception_ptr(RunError("")),
      std::make_exception_ptr(std::bad_optional_access()),
      std::make_exception_ptr(std::out_of_range("map::at")),
      std::make_exception_ptr(std::runtime_error("\n")),
      std::make_exception_ptr(7),
      std::make_exception_ptr("a text")};
  for (const std::exception_ptr& thrown : all) {
    const Failure failure = failure_of(thrown);
    EXPECT_GT(failure.line.size(), 8u) << failure.line;
    EXPECT_EQ(failure.line.find_first_of("\r\n"), failure.line.npos) << failure.line;
    EXPECT_NE(failure.exit_code, 0);
  }
  EXPECT_THAT(of(std::bad_optional_access()).line, HasSubstr("mistake of this program"));
}

}  // namespace
}  // namespace fedep
