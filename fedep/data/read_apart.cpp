#include "fedep/data/read_apart.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <exception>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "fedep/data/data_file.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

// What a record in the pipe is, before its size.
enum class Kind : std::uint64_t { data, input_error, run_error, end };
using Frame = std::array<std::uint64_t, 2>;  // kind, bytes

// Bytes into the pipe; nobody reads them any more if that fails.
void send_all(int pipe, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(pipe, bytes.data(), bytes.size());
    if (n < 0 && errno != EINTR) ::_exit(1);
    if (n > 0) bytes = bytes.subspan(std::size_t(n));
  }
}

void send_frame(int pipe, Kind kind, std::span<const std::byte> bytes) {
  const Frame frame{std::uint64_t(kind), bytes.size()};
  send_all(pipe, std::as_bytes(std::span(frame)));
  send_all(pipe, bytes);
}

void send_text(int pipe, Kind kind, std::string_view text) {
  send_frame(pipe, kind, std::as_bytes(std::span(text)));
}

[[noreturn]] void read_here(int pipe, std::uint64_t seconds,
                            const std::function<void(const RecordSender&)>& read) {
  for (const int number : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGXCPU, SIGPIPE, SIGALRM}) {
    ::signal(number, SIG_DFL);
  }
  const rlimit no_core{0, 0}, little_time{seconds, seconds + 1};  // SIGXCPU, then SIGKILL
  ::setrlimit(RLIMIT_CORE, &no_core);
  ::setrlimit(RLIMIT_CPU, &little_time);
  // What the library says while it breaks down helps nobody.
  if (const int nowhere = ::open("/dev/null", O_WRONLY); nowhere >= 0)
    ::dup2(nowhere, STDERR_FILENO);
  try {
    read([&](std::span<const SectionView> sections) {
      send_frame(pipe, Kind::data, record_bytes(sections));
    });
    send_frame(pipe, Kind::end, {});
  } catch (const InputError& error) {
    send_text(pipe, Kind::input_error, error.what());
  } catch (const std::exception& error) {
    send_text(pipe, Kind::run_error, error.what());
  }
  ::_exit(0);
}

// The other process, ended with this.
class Child {
 public:
  Child(pid_t pid, FileDescriptor pipe) : pid_(pid), pipe_(std::move(pipe)) {}
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() { finish(); }

  const FileDescriptor& pipe() const { return pipe_; }

  // How it ended, as waitpid says it.
  int finish() {
    if (pid_ < 0) return status_;
    pipe_ = FileDescriptor();
    ::kill(pid_, SIGKILL);
    while (::waitpid(pid_, &status_, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return status_;
  }
  // The same, but it may end by itself.
  int wait() {
    while (::waitpid(pid_, &status_, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return status_;
  }

 private:
  pid_t pid_;
  FileDescriptor pipe_;
  int status_ = 0;
};

std::string text_from(const FileDescriptor& pipe, const std::filesystem::path& path,
                      std::uint64_t size) {
  constexpr std::uint64_t kLongest = 4096;
  std::string text(std::size_t(std::min(size, kLongest)), ' ');
  text.resize(read_some(pipe, path, std::as_writable_bytes(std::span(text))));
  return text;
}

Record record_from(const FileDescriptor& pipe, const std::filesystem::path& path,
                   std::uint64_t size) {
  RecordReader reader;
  std::vector<std::byte> chunk(std::size_t(std::min<std::uint64_t>(size, 1 << 20)));
  while (size > 0) {
    const auto piece =
        std::span(chunk).first(std::size_t(std::min<std::uint64_t>(size, chunk.size())));
    if (read_some(pipe, path, piece) != piece.size()) break;  // take() will say so
    reader.feed(piece);
    size -= piece.size();
  }
  return reader.take();
}

}  // namespace

void read_apart(std::string_view dataset, const std::filesystem::path& path,
                const std::function<void(const RecordSender&)>& read,
                const std::function<void(Record)>& take) {
  const std::uint64_t size = size_of(open_data_file(dataset, path), path);
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw RunError(
        fmt::format("{}: cannot make a pipe: {}", dataset, std::generic_category().message(errno)));
  }
  FileDescriptor to_read(ends[0]), to_write(ends[1]);
  const pid_t pid = ::fork();
  if (pid < 0) {
    throw RunError(fmt::format("{}: cannot make a process: {}", dataset,
                               std::generic_category().message(errno)));
  }
  if (pid == 0) read_here(to_write.get(), 2 + (size >> 20), read);
  to_write = FileDescriptor();
  Child child(pid, std::move(to_read));
  Frame frame{};
  while (read_some(child.pipe(), path, std::as_writable_bytes(std::span(frame))) == sizeof(frame)) {
    const auto [kind, bytes] = frame;
    if (kind == std::uint64_t(Kind::end)) return;
    if (kind == std::uint64_t(Kind::input_error))
      throw InputError(text_from(child.pipe(), path, bytes));
    if (kind == std::uint64_t(Kind::run_error))
      throw RunError(text_from(child.pipe(), path, bytes));
    take(record_from(child.pipe(), path, bytes));
  }
  const int status = child.wait();
  throw InputError(fmt::format(
      "{}: {} must be a sound file, but reading it {}", dataset, path.string(),
      WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU ? "does not end" : "breaks down"));
}

}  // namespace fedep
