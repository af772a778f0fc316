// What the program says: results on standard output, everything else on standard error.
//
//   print_text("{} {:.6g}\n", name, value);     // a result, for people
//   print_bytes(csv);                           // a result, for programs
//   say("run is in {}\n", out.string());
//
// Text that comes from files can hold anything. What would move a terminal's cursor, colour it or
// turn a line around is shown as an escape (printable.h).
//
// A result that cannot be printed is a failure: RunError, and ReaderGone where nobody reads any more
// (`fedep list | head -1`). What cannot be said is lost, and the work goes on.
#pragma once

#include <stdexcept>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "fedep/message/error.h"

namespace fedep {

// Standard output is a pipe that was closed at its other end.
struct ReaderGone : RunError {
  using RunError::RunError;
};

// First thing in main(). A stream that is closed would be the next file that is opened, and that
// file would hold what is printed: it is opened, so that writing to it fails. Nor does a pipe that
// nobody reads end the program.
void keep_standard_streams();

// Nothing is printed, or said but by say_anyway(): of several ranks the first one speaks.
void keep_quiet(bool quiet = true);

void print_bytes(std::string_view text);  // as they are, unless standard output is a terminal
void print_printable(std::string_view text);
void say_printable(std::string_view text);
void say_printable_anyway(std::string_view text);
void say_to_terminal(std::string_view text);  // as it is: the program's own control of a terminal

// Throws where results have not left the process.
void flush_results();

template <class... Args>
void print_text(fmt::format_string<Args...> format, Args&&... args) {
  print_printable(fmt::format(format, std::forward<Args>(args)...));
}

template <class... Args>
void say(fmt::format_string<Args...> format, Args&&... args) {
  say_printable(fmt::format(format, std::forward<Args>(args)...));
}

// What a process that is quiet says all the same: what it alone knows, and is lost with it.
template <class... Args>
void say_anyway(fmt::format_string<Args...> format, Args&&... args) {
  say_printable_anyway(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace fedep
