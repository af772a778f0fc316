#include "app/output.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

#include "app/printable.h"

namespace fedep {
namespace {

[[noreturn]] void fail_to_print() {
  const std::string why = fmt::format("standard output: cannot write: {}", std::strerror(errno));
  if (errno == EPIPE) throw ReaderGone(why);
  throw RunError(why);
}

bool quiet = false;

void print(std::string_view text) {
  if (quiet) return;
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) fail_to_print();
}

void write_error(std::string_view text) {
  [[maybe_unused]] const std::size_t told = std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace

void keep_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) != -1 || errno != EBADF) continue;
    // The lowest number that is free is this one. What is opened the wrong way round refuses.
    [[maybe_unused]] const int opened =
        ::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
  std::signal(SIGPIPE, SIG_IGN);
}

void keep_quiet(bool wanted) { quiet = wanted; }

void print_bytes(std::string_view text) {
  if (::isatty(STDOUT_FILENO) == 1) return print_printable(text);
  print(text);
}

void print_printable(std::string_view text) { print(printable_lines(text)); }

void say_printable(std::string_view text) { say_to_terminal(printable_lines(text)); }

void say_printable_anyway(std::string_view text) { write_error(printable_lines(text)); }

void say_to_terminal(std::string_view text) {
  if (!quiet) write_error(text);
}

void flush_results() {
  errno = 0;
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) fail_to_print();
}

}  // namespace fedep
