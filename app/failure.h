// What a command that did not succeed says, and its exit code: one line for whatever was thrown.
//
//   } catch (...) {
//     const Failure failure = failure_of(std::current_exception());
//
#pragma once

#include <exception>
#include <string>

namespace fedep {

struct Failure {
  std::string line;
  int exit_code = 1;

  bool operator==(const Failure&) const = default;
};
Failure failure_of(const std::exception_ptr& thrown);

}  // namespace fedep
