#include "fedep/store/durable_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <random>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "fedep/message/error.h"
#include "fedep/message/system_call.h"

namespace fedep {
namespace {

using Path = std::filesystem::path;

constexpr std::size_t kBufferSize = std::size_t(1) << 16;

Path directory_of(const Path& path) {
  return path.has_parent_path() ? path.parent_path() : Path(".");
}

void sync_directory(const Path& path) {
  const Path directory = directory_of(path);
  const FileDescriptor file(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!file) throw_run_error(directory, "open");
  if (uninterrupted([&] { return ::fsync(file.get()); }) != 0) {
    throw_run_error(directory, "sync");
  }
}

// Of a folder that others made: one that may not be read is its owner's business.
void sync_directory_if_readable(const Path& path) {
  if (::access(directory_of(path).c_str(), R_OK) == 0) sync_directory(path);
}

// The folder and those above it that are missing, and the one above these; the topmost first.
std::vector<Path> levels_to_make(const Path& path) {
  std::vector<Path> levels;
  Path level = path.has_filename() ? path : path.parent_path();
  for (bool missing = true; missing && !level.empty(); level = level.parent_path()) {
    std::error_code ignored;
    missing = !std::filesystem::exists(level, ignored) && level != level.parent_path();
    levels.push_back(level);
  }
  std::reverse(levels.begin(), levels.end());
  return levels;
}

// What file systems say that have no locks, as some of clusters.
bool lacks_locks(int error) { return error == ENOSYS || error == ENOLCK || error == EOPNOTSUPP; }

// The file a replacement is written to, locked; removed when this goes, unless it was renamed.
class Temporary {
 public:
  explicit Temporary(const Path& target) : target_(target) {
    path_ = directory_of(target) / fmt::format(".{}.tmp", target.filename().string());
    while (!open_locked()) {
    }
    if (::ftruncate(file_.get(), 0) != 0) {
      const int error = errno;
      remove();
      throw RunError(failure(target_, "write", error));
    }
    buffer_.reserve(kBufferSize);
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  ~Temporary() { remove(); }

  // Small pieces are collected; large ones are written from where they lie.
  void write(std::span<const std::byte> bytes) {
    if (buffer_.size() + bytes.size() > kBufferSize) flush();
    if (bytes.size() >= kBufferSize) return write_out(bytes);
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  }

  void rename_to_target() {
    flush();
    if (uninterrupted([&] { return ::fsync(file_.get()); }) != 0) throw_run_error(target_, "sync");
    if (::rename(path_.c_str(), target_.c_str()) != 0) throw_run_error(target_, "replace");
    exists_ = false;
  }

 private:
  // False if another writer renamed or removed the temporary while we waited for it.
  bool open_locked() {
    file_ =
        FileDescriptor(::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
    if (!file_) throw_run_error(target_, "create a temporary beside it");
    if (uninterrupted([&] { return ::flock(file_.get(), LOCK_EX); }) != 0) {
      if (!lacks_locks(errno)) throw_run_error(target_, "lock its temporary");
      ::unlink(path_.c_str());
      open_own();
      return true;
    }
    struct stat opened = {};
    struct stat named = {};
    if (::fstat(file_.get(), &opened) != 0) throw_run_error(target_, "inspect its temporary");
    exists_ = ::lstat(path_.c_str(), &named) == 0 && named.st_ino == opened.st_ino &&
              named.st_dev == opened.st_dev;
    return exists_;
  }

  // Without locks every writer has a name of its own.
  void open_own() {
    std::random_device dice;
    path_ = directory_of(target_) /
            fmt::format(".{}.{:08x}{:08x}.tmp", target_.filename().string(), dice(), dice());
    file_ = FileDescriptor(
        ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666));
    if (!file_) throw_run_error(target_, "create a temporary beside it");
    exists_ = true;
  }

  void flush() {
    write_out(buffer_);
    buffer_.clear();
  }

  void write_out(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t n =
          uninterrupted([&] { return ::write(file_.get(), bytes.data(), bytes.size()); });
      if (n < 0) throw_run_error(target_, "write");
      bytes = bytes.subspan(std::size_t(n));
    }
  }

  // Before the lock goes, so that no other writer's temporary is hit.
  void remove() {
    if (exists_) ::unlink(path_.c_str());
    exists_ = false;
  }

  Path target_;
  Path path_;
  FileDescriptor file_;
  bool exists_ = false;
  std::vector<std::byte> buffer_;
};

// Where the last whole line of the first `end` bytes ends.
off_t end_of_lines(const FileDescriptor& file, const Path& path, off_t end) {
  std::array<char, 4096> block;
  while (end > 0) {
    const off_t begin = std::max<off_t>(0, end - off_t(block.size()));
    const ssize_t n = uninterrupted(
        [&] { return ::pread(file.get(), block.data(), std::size_t(end - begin), begin); });
    if (n < 0) throw_run_error(path, "read");
    if (n != end - begin) throw RunError(failure(path, "read", EIO));
    for (off_t i = n; i > 0; --i) {
      if (block[std::size_t(i - 1)] == '\n') return begin + i;
    }
    end = begin;
  }
  return 0;
}

}  // namespace

void replace_file(const Path& path, const FileWriter& writer) {
  if (!path.has_filename()) {
    throw InputError(
        fmt::format("replace_file: path must name a file, but is '{}'", path.string()));
  }
  {
    Temporary temporary(path);
    writer([&](std::span<const std::byte> bytes) { temporary.write(bytes); });
    temporary.rename_to_target();
  }
  sync_directory(path);
}

void replace_file(const Path& path, std::span<const std::byte> bytes) {
  replace_file(path, [&](const ByteSink& sink) { sink(bytes); });
}

void make_folder(const Path& path) {
  for (const Path& level : levels_to_make(path)) {
    std::error_code error;
    const auto status = std::filesystem::status(level, error);
    error.clear();
    if (std::filesystem::exists(status) && !std::filesystem::is_directory(status)) {
      error = std::make_error_code(std::errc::not_a_directory);
    } else {
      std::filesystem::create_directory(level, error);
    }
    if (error) throw RunError(failure(path, "make directory", error.value()));
    sync_directory_if_readable(level);
  }
}

DurableLog::DurableLog(Path path) : path_(std::move(path)) {
  file_ = FileDescriptor(::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!file_) throw_run_error(path_, "open for appending");
  // Where nothing is to be cut off nothing is: without locks another one may be adding a line.
  const auto size = off_t(size_of(file_, path_));
  const off_t whole = end_of_lines(file_, path_, size);
  if (whole < size && ::ftruncate(file_.get(), whole) != 0) throw_run_error(path_, "truncate");
  sync_directory(path_);
}

void DurableLog::append_line(std::string_view line) {
  if (line.find('\n') != std::string_view::npos) {
    throw InputError("append_line: line must be a single one, but contains a line break");
  }
  const std::string text = std::string(line) + '\n';
  const ssize_t n = uninterrupted([&] { return ::write(file_.get(), text.data(), text.size()); });
  if (n == ssize_t(text.size())) return;
  const int error = n < 0 ? errno : ENOSPC;
  // A part of the line must not remain; if even this fails, opening the log again will do it.
  const auto whole = [&] { return end_of_lines(file_, path_, off_t(size_of(file_, path_))); };
  const bool removed = n <= 0 || ::ftruncate(file_.get(), whole()) == 0;
  throw RunError(failure(path_, removed ? "append a line" : "append a whole line", error));
}

void DurableLog::sync() {
  if (uninterrupted([&] { return ::fdatasync(file_.get()); }) != 0) throw_run_error(path_, "sync");
}

}  // namespace fedep
