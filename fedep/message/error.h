// The two ways things go wrong, told apart because programs exit differently for them.
//
//   InputError    what the caller or user gave is wrong: an argument, a recipe, a corrupt file    exit code 2
//   RunError      the world failed while we ran: a full disk, a read-only directory               exit code 1
//
// Every message has one form: function or file, the thing, what was expected, what came.
#pragma once

#include <stdexcept>
#include <string>

namespace fedep {

class InputError : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

class RunError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace fedep
