// Preloaded into a program (LD_PRELOAD), sends it a signal at its n-th call that changes a file:
//
//   SIGNAL_AT=17 SIGNAL=9 LD_PRELOAD=libsignal_at.so fedep run recipe.toml
//
// Calls are counted from 1, whichever thread makes them; writes to standard output and error do not
// count. The signal comes before the call is done, but a write that is killed is half done.
// SIGNAL_TIMES=2 sends it twice. With SIGNAL_LOG=<file> the number of calls is written there at the
// end.
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>

namespace {

std::atomic<long> calls = 0;

long number_from(const char* name) {
  const char* text = getenv(name);
  return text != nullptr ? atol(text) : 0;
}

template <class Function>
Function* next(Function*, const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

bool is_time() {
  static const long when = number_from("SIGNAL_AT");
  return ++calls == when;
}

int chosen_signal() {
  static const int number = static_cast<int>(number_from("SIGNAL"));
  return number;
}

void send_signal() {
  const long times = number_from("SIGNAL_TIMES");
  for (long i = 0; i < 1 || i < times; ++i) kill(getpid(), chosen_signal());
}

void count() {
  if (is_time()) send_signal();
}

struct Reporter {
  ~Reporter() {
    const char* path = getenv("SIGNAL_LOG");
    FILE* file = path != nullptr ? fopen(path, "w") : nullptr;
    if (file == nullptr) return;
    fprintf(file, "%ld\n", calls.load());
    fclose(file);
  }
} reporter;

}  // namespace

extern "C" {

ssize_t write(int fd, const void* bytes, size_t size) {
  static const auto real = next(&write, "write");
  if (fd > STDERR_FILENO && is_time()) {
    [[maybe_unused]] const ssize_t half =
        chosen_signal() == SIGKILL ? real(fd, bytes, size / 2) : 0;
    send_signal();
  }
  return real(fd, bytes, size);
}

int fsync(int fd) {
  static const auto real = next(&fsync, "fsync");
  count();
  return real(fd);
}

int fdatasync(int fd) {
  static const auto real = next(&fdatasync, "fdatasync");
  count();
  return real(fd);
}

int ftruncate(int fd, off_t size) noexcept {
  static const auto real = next(&ftruncate, "ftruncate");
  count();
  return real(fd, size);
}

int rename(const char* from, const char* to) noexcept {
  static const auto real = next(&rename, "rename");
  count();
  return real(from, to);
}

int unlink(const char* path) noexcept {
  static const auto real = next(&unlink, "unlink");
  count();
  return real(path);
}

int remove(const char* path) noexcept {
  static const auto real = next(&remove, "remove");
  count();
  return real(path);
}

int mkdir(const char* path, mode_t mode) noexcept {
  static const auto real = next(&mkdir, "mkdir");
  count();
  return real(path, mode);
}

int open(const char* path, int flags, ...) {
  static const auto real = next(&open, "open");
  if ((flags & O_CREAT) == 0) return real(path, flags);
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = va_arg(rest, mode_t);
  va_end(rest);
  count();
  return real(path, flags, mode);
}

}  // extern "C"
