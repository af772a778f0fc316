// What `fedep data …` prints, for tests.
#pragma once

#include <string>

#include <gtest/gtest.h>

#include "app/command.h"
#include "app/data/data_command.h"

namespace fedep {

// On stdout; errors come through.
inline std::string printed_by_data(const std::string& arguments) {
  Command app("fedep", "fedep");
  int exit_code = -1;
  add_data_command(app, exit_code);
  testing::internal::CaptureStdout();
  try {
    app.parse(arguments);
  } catch (...) {
    testing::internal::GetCapturedStdout();
    throw;
  }
  EXPECT_EQ(exit_code, 0);
  return testing::internal::GetCapturedStdout();
}

}  // namespace fedep
