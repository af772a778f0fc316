// Preloaded into a program (LD_PRELOAD), breaks one of the calls by which it changes files below a
// folder, or writes all of them down:
//
//   CRASH_FOLDER=/tmp/lab CRASH_AT=17 CRASH_HOW=EIO LD_PRELOAD=libcrash_at.so fedep run …
//   CRASH_FOLDER=/tmp/lab CRASH_RECORD=/tmp/calls   LD_PRELOAD=libcrash_at.so fedep run …
//
// Calls are counted from 1, whichever thread makes them. CRASH_HOW says what happens at the one:
//
//   EIO, ENOSPC   it does nothing and fails
//   short         a write is half done and says so; as EIO for any other call
//   before        SIGKILL before it is done; a write is half done
//   after         SIGKILL once it is done
//   stop          SIGSTOP before it is done; it goes on with SIGCONT
//
// A record has a line per call that was done, its parts separated by tabs; files are numbered by
// their opening: "open 3 created|truncated|old PATH", "write 3 OFFSET HEX", "truncate 3 SIZE",
// "sync 3", "rename FROM TO", "unlink PATH", "mkdir PATH". CRASH_COUNT names a file that gets the
// number of calls at the end. With CRASH_NO_LOCKS=1 there are no file locks, as on some file systems.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <mutex>
#include <string>
#include <string_view>

namespace {

std::recursive_mutex mutex;  // guards everything below
long calls = 0;
long opened = 0;
std::array<long, 4096> files = {};  // by descriptor: the number of its opening, 0 of other files

std::string_view text_from(const char* name) {
  const char* text = getenv(name);
  return text != nullptr ? text : "";
}

template <class Function>
Function* next(Function*, const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

bool is_ours(std::string_view path) {
  static const std::string folder(text_from("CRASH_FOLDER"));
  return !folder.empty() && path.starts_with(folder) &&
         (path.size() == folder.size() || path[folder.size()] == '/');
}

long number_of(int fd) { return fd >= 0 && fd < int(files.size()) ? files[std::size_t(fd)] : 0; }

void note(const std::string& line) {
  static const long record = text_from("CRASH_RECORD").empty()
                                 ? -1
                                 : syscall(SYS_open, getenv("CRASH_RECORD"),
                                           O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (record >= 0) syscall(SYS_write, record, (line + "\n").c_str(), line.size() + 1);
}

[[noreturn]] void die() {
  syscall(SYS_kill, getpid(), SIGKILL);
  for (;;) pause();
}

// How this call ends: one of CRASH_HOW at the one that was chosen, else nothing.
std::string_view how_it_ends() {
  static const long when = atol(std::string(text_from("CRASH_AT")).c_str());
  return ++calls == when ? text_from("CRASH_HOW") : std::string_view();
}

int error_of(std::string_view how) { return how == "ENOSPC" ? ENOSPC : EIO; }

// A call that gives -1 if it fails, and what is written down if it does not.
template <class Call, class Note>
auto passed(Call call, Note line) -> decltype(call()) {
  const std::lock_guard lock(mutex);
  const std::string_view how = how_it_ends();
  if (how == "before") die();
  if (how == "stop") kill(getpid(), SIGSTOP);
  if (!how.empty() && how != "after" && how != "stop") {
    errno = error_of(how);
    return -1;
  }
  const auto result = call();
  const int error = errno;
  if (result != -1) note(line(result));
  if (how == "after") die();
  errno = error;
  return result;
}

template <class Open>
int opened_file(const char* path, int flags, Open open) {
  if (!is_ours(path)) {
    const int fd = open();
    const std::lock_guard lock(mutex);
    if (fd >= 0 && fd < int(files.size())) files[std::size_t(fd)] = 0;
    return fd;
  }
  struct stat status = {};
  const bool created = (flags & O_CREAT) != 0 && stat(path, &status) != 0;
  return passed(open, [&](int fd) {
    if (fd < int(files.size())) files[std::size_t(fd)] = ++opened;
    const char* how = created ? "created" : (flags & O_TRUNC) != 0 ? "truncated" : "old";
    return "open\t" + std::to_string(opened) + "\t" + how + "\t" + path;
  });
}

std::string hex(const void* bytes, size_t size) {
  std::string text;
  for (size_t i = 0; i < size; ++i) {
    char digits[3];
    snprintf(digits, sizeof digits, "%02x", static_cast<const unsigned char*>(bytes)[i]);
    text += digits;
  }
  return text;
}

off_t place_of_write(int fd) {
  struct stat status = {};
  if ((fcntl(fd, F_GETFL) & O_APPEND) != 0 && fstat(fd, &status) == 0) return status.st_size;
  return lseek(fd, 0, SEEK_CUR);
}

struct Reporter {
  ~Reporter() {
    const std::string path(text_from("CRASH_COUNT"));
    FILE* file = path.empty() ? nullptr : fopen(path.c_str(), "w");
    if (file == nullptr) return;
    fprintf(file, "%ld\n", calls);
    fclose(file);
  }
} reporter;

}  // namespace

extern "C" {

ssize_t write(int fd, const void* bytes, size_t size) {
  static const auto real = next(&write, "write");
  const long number = number_of(fd);
  if (number == 0) return real(fd, bytes, size);
  const std::lock_guard lock(mutex);
  const std::string_view how = how_it_ends();
  if (how == "EIO" || how == "ENOSPC") {
    errno = error_of(how);
    return -1;
  }
  if (how == "stop") kill(getpid(), SIGSTOP);
  const off_t place = place_of_write(fd);
  const ssize_t done = real(fd, bytes, how == "before" || how == "short" ? size / 2 : size);
  if (done > 0) {
    note("write\t" + std::to_string(number) + "\t" + std::to_string(place) + "\t" +
         hex(bytes, size_t(done)));
  }
  if (how == "before" || how == "after") die();
  return done;
}

int fsync(int fd) {
  static const auto real = next(&fsync, "fsync");
  const long number = number_of(fd);
  if (number == 0) return real(fd);
  return passed([&] { return real(fd); }, [&](int) { return "sync\t" + std::to_string(number); });
}

int fdatasync(int fd) {
  static const auto real = next(&fdatasync, "fdatasync");
  const long number = number_of(fd);
  if (number == 0) return real(fd);
  return passed([&] { return real(fd); }, [&](int) { return "sync\t" + std::to_string(number); });
}

int ftruncate(int fd, off_t size) noexcept {
  static const auto real = next(&ftruncate, "ftruncate");
  const long number = number_of(fd);
  if (number == 0) return real(fd, size);
  return passed(
      [&] { return real(fd, size); },
      [&](int) { return "truncate\t" + std::to_string(number) + "\t" + std::to_string(size); });
}

int flock(int fd, int operation) noexcept {
  static const auto real = next(&flock, "flock");
  if (text_from("CRASH_NO_LOCKS").empty()) return real(fd, operation);
  errno = ENOLCK;
  return -1;
}

int close(int fd) {
  static const auto real = next(&close, "close");
  {
    const std::lock_guard lock(mutex);
    if (number_of(fd) != 0) files[std::size_t(fd)] = 0;
  }
  return real(fd);
}

int rename(const char* from, const char* to) noexcept {
  static const auto real = next(&rename, "rename");
  if (!is_ours(to)) return real(from, to);
  return passed([&] { return real(from, to); },
                [&](int) { return std::string("rename\t") + from + "\t" + to; });
}

int unlink(const char* path) noexcept {
  static const auto real = next(&unlink, "unlink");
  if (!is_ours(path)) return real(path);
  return passed([&] { return real(path); }, [&](int) { return std::string("unlink\t") + path; });
}

int remove(const char* path) noexcept {
  static const auto real = next(&remove, "remove");
  if (!is_ours(path)) return real(path);
  return passed([&] { return real(path); }, [&](int) { return std::string("unlink\t") + path; });
}

int mkdir(const char* path, mode_t mode) noexcept {
  static const auto real = next(&mkdir, "mkdir");
  if (!is_ours(path)) return real(path, mode);
  return passed([&] { return real(path, mode); },
                [&](int) { return std::string("mkdir\t") + path; });
}

int open(const char* path, int flags, ...) {
  static const auto real = next(&open, "open");
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return opened_file(path, flags, [&] { return real(path, flags, mode); });
}

// By which folders are listed.
int openat(int folder, const char* path, int flags, ...) {
  static const auto real = next(&openat, "openat");
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return opened_file(path, flags, [&] { return real(folder, path, flags, mode); });
}

}  // extern "C"
