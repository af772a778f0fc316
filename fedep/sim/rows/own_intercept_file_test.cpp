#include "fedep/sim/rows/own_intercept_file.h"

#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fedep/message/error.h"
#include "fedep/message/test_folder.h"

namespace fedep {
namespace {

using ::testing::HasSubstr;

class OwnInterceptFile : public ::testing::Test {
 protected:
  OwnInterceptFile() {
    own_.add("Ward 3/ä", {2.5, -0.75, {0.5, 1e-9}});
    own_.add("other", {0, 0, {0, 0}});
  }
  std::string refusal(std::size_t columns) const {
    try {
      read_own_intercepts(folder_.path(), 7, columns);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  }

  TemporaryFolder folder_;
  OwnIntercepts own_;
};

TEST_F(OwnInterceptFile, ReadsBackWhatEveryClientWrote) {
  write_own_intercepts(folder_.path(), own_, 20, 7);
  EXPECT_EQ(read_own_intercepts(folder_.path(), 7, 2).all(), own_.all());
  // Another checkpoint's are none.
  EXPECT_TRUE(read_own_intercepts(folder_.path(), 8, 2).all().empty());
  EXPECT_TRUE(read_own_intercepts(folder_.path() / "elsewhere", 7, 2).all().empty());
}

TEST_F(OwnInterceptFile, DamagedFilesAndOtherColumnsAreRefused) {
  write_own_intercepts(folder_.path(), own_, 20, 7);
  EXPECT_THAT(refusal(3), HasSubstr("coupling of 3 columns"));
  for (const auto& entry : std::filesystem::directory_iterator(intercepts_path(folder_.path()))) {
    std::filesystem::resize_file(entry.path(), std::filesystem::file_size(entry.path()) - 1);
    break;
  }
  EXPECT_THAT(refusal(2), HasSubstr(".safetensors"));
}

}  // namespace
}  // namespace fedep
