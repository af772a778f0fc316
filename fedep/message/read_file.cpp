#include "fedep/message/read_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "fedep/message/error.h"
#include "fedep/message/system_call.h"

namespace fedep {
namespace {

using Path = std::filesystem::path;

constexpr std::size_t kReadSize = std::size_t(1) << 20;

struct stat status_of(const FileDescriptor& file, const Path& path) {
  struct stat status = {};
  if (::fstat(file.get(), &status) != 0) throw_run_error(path, "inspect");
  return status;
}

void check_size(const Path& path, std::uint64_t size, std::uint64_t most) {
  if (size <= most) return;
  throw InputError(
      fmt::format("{}: file must have at most {} bytes, but has {}", path.string(), most, size));
}

}  // namespace

FileDescriptor::FileDescriptor(FileDescriptor&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)) {}

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) ::close(fd_);
}

int FileDescriptor::release() { return std::exchange(fd_, -1); }

FileDescriptor open_file(const Path& path) {
  // Without O_NONBLOCK a pipe would block here until somebody writes; regular files know no difference.
  FileDescriptor file(uninterrupted(
      [&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); }));
  const int error = errno;
  if (!file) {
    if (error == ENOENT || error == ENOTDIR || error == EACCES || error == ENAMETOOLONG ||
        error == ELOOP || error == ENXIO) {
      throw InputError(failure(path, "read", error));
    }
    throw RunError(failure(path, "read", error));
  }
  const struct stat status = status_of(file, path);
  if (S_ISDIR(status.st_mode)) throw InputError(failure(path, "read", EISDIR));
  if (!S_ISREG(status.st_mode)) {
    throw InputError(fmt::format("{}: must be a regular file, but is a {}", path.string(),
                                 S_ISFIFO(status.st_mode) ? "pipe" : "device or socket"));
  }
  return file;
}

std::uint64_t size_of(const FileDescriptor& file, const Path& path) {
  return std::uint64_t(status_of(file, path).st_size);
}

std::size_t read_some(const FileDescriptor& file, const Path& path, std::span<std::byte> into) {
  std::size_t done = 0;
  while (done < into.size()) {
    const ssize_t n =
        uninterrupted([&] { return ::read(file.get(), into.data() + done, into.size() - done); });
    if (n < 0) throw_run_error(path, "read");
    if (n == 0) break;
    done += std::size_t(n);
  }
  return done;
}

std::vector<std::byte> read_file(const Path& path, std::uint64_t most) {
  const FileDescriptor file = open_file(path);
  const std::uint64_t size_now = size_of(file, path);
  check_size(path, size_now, most);
  // The size is where to start: a file may grow meanwhile, and files in /proc have none.
  std::vector<std::byte> bytes(std::size_t(size_now) + 1);
  std::size_t size = 0;
  while ((size += read_some(file, path, std::span(bytes).subspan(size))) == bytes.size()) {
    check_size(path, size, most);
    bytes.resize(bytes.size() + std::max(bytes.size(), kReadSize));
  }
  bytes.resize(size);
  return bytes;
}

std::vector<std::byte> read_file(const Path& path) { return read_file(path, machine_memory()); }

void read_file_chunks(const Path& path, const ByteSink& sink) {
  const FileDescriptor file = open_file(path);
  // A small file needs no megabyte.
  std::vector<std::byte> chunk(
      std::size_t(std::clamp<std::uint64_t>(size_of(file, path), 4096, kReadSize)));
  while (const std::size_t n = read_some(file, path, chunk)) sink(std::span(chunk).first(n));
}

std::uint64_t machine_memory() {
  static const std::uint64_t bytes = std::uint64_t(std::max(0L, ::sysconf(_SC_PHYS_PAGES))) *
                                     std::uint64_t(::sysconf(_SC_PAGESIZE));
  return bytes;
}

}  // namespace fedep
