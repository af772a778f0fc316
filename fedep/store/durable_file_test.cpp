// Failures come from a real file system: a tmpfs of 64 KiB, filled or made read-only. Mounting it
// needs root.
#include "fedep/store/durable_file.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fedep/message/error.h"
#include "fedep/message/test_folder.h"

namespace fedep {
namespace {

using testing::HasSubstr;
using Path = std::filesystem::path;
using Bytes = std::vector<std::byte>;

// A file system of 64 KiB.
class SmallDisk {
 public:
  SmallDisk() { mounted_ = ::mount("tmpfs", path().c_str(), "tmpfs", 0, "size=64k") == 0; }
  ~SmallDisk() {
    if (mounted_) ::umount2(path().c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  bool mounted() const { return mounted_; }
  bool make_read_only() {
    return ::mount("tmpfs", path().c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, "size=64k") == 0;
  }
  const Path& path() const { return folder_.path(); }

 private:
  TemporaryFolder folder_;
  bool mounted_ = false;
};

constexpr const char* kNoMount = "mounting a tmpfs is not permitted here (run as root)";

Bytes bytes_of_size(std::size_t n, int value = 7) { return Bytes(n, std::byte(value)); }

Bytes text_bytes(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return Bytes(bytes.begin(), bytes.end());
}

std::set<std::string> names_in(const Path& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.insert(entry.path().filename().string());
  }
  return names;
}

TEST(ReplaceFile, GivesBackWhatWasWritten) {
  const TemporaryFolder folder;
  const Path path = folder.path() / "state";
  for (const std::size_t n : {0u, 1u, 65535u, 65536u, 65537u, 3u << 20}) {
    replace_file(path, bytes_of_size(n, int(n % 251)));
    EXPECT_EQ(read_file(path), bytes_of_size(n, int(n % 251)));
  }
  EXPECT_EQ(names_in(folder.path()), std::set<std::string>{"state"});
}

TEST(ReplaceFile, KeepsTheOrderOfSmallAndLargePieces) {
  const TemporaryFolder folder;
  const Path path = folder.path() / "state";
  Bytes expected;
  replace_file(path, [&](const ByteSink& sink) {
    int value = 0;
    for (const std::size_t n : {1u, 65536u, 200000u, 8u, 65535u, 2u, 0u, 65536u, 65535u, 1u, 1u}) {
      const Bytes piece = bytes_of_size(n, ++value);
      expected.insert(expected.end(), piece.begin(), piece.end());
      sink(piece);
    }
  });
  EXPECT_EQ(read_file(path), expected);
}

TEST(ReplaceFile, ShowsTheOldFileUntilTheNewOneIsComplete) {
  const TemporaryFolder folder;
  const Path path = folder.path() / "state";
  replace_file(path, text_bytes("old"));
  replace_file(path, [&](const ByteSink& sink) {
    sink(bytes_of_size(1 << 17));
    EXPECT_EQ(text_of(path), "old");
  });
  EXPECT_EQ(read_file(path).size(), 1u << 17);
}

TEST(ReplaceFile, LeavesTheOldFileWhenItsWriterThrows) {
  const TemporaryFolder folder;
  const Path path = folder.path() / "state";
  replace_file(path, text_bytes("old"));
  const auto writer = [](const ByteSink& sink) {
    sink(bytes_of_size(100000));
    throw InputError("writer gave up");
  };
  EXPECT_EQ(message_of<InputError>([&] { replace_file(path, writer); }), "writer gave up");
  EXPECT_EQ(text_of(path), "old");
  EXPECT_EQ(names_in(folder.path()), std::set<std::string>{"state"});
}

TEST(ReplaceFile, WritesOverWhatAKilledProcessLeft) {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / ".state.tmp") << "half of something longer than what follows";
  replace_file(folder.path() / "state", text_bytes("new"));
  EXPECT_EQ(text_of(folder.path() / "state"), "new");
  EXPECT_EQ(names_in(folder.path()), std::set<std::string>{"state"});
}

TEST(ReplaceFile, LetsWritersOfOneFileTakeTurns) {
  const TemporaryFolder folder;
  const Path path = folder.path() / "state";
  const auto write_many = [&](int value) {
    for (int i = 0; i < 20; ++i) replace_file(path, bytes_of_size(100000, value));
  };
  std::thread other(write_many, 1);
  write_many(2);
  other.join();
  const Bytes came = read_file(path);
  EXPECT_TRUE(came == bytes_of_size(100000, 1) || came == bytes_of_size(100000, 2));
  EXPECT_EQ(names_in(folder.path()), std::set<std::string>{"state"});
}

TEST(ReplaceFile, GivesTheRightsOfAnOrdinaryFile) {
  const TemporaryFolder folder;
  const mode_t old_mask = ::umask(022);
  replace_file(folder.path() / "state", text_bytes("x"));
  ::umask(old_mask);
  struct stat status = {};
  ASSERT_EQ(::stat((folder.path() / "state").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777u, 0644u);
}

TEST(ReplaceFile, SaysWhenTheFolderIsMissingOrTheTargetIsOne) {
  const TemporaryFolder folder;
  EXPECT_EQ(message_of<RunError>([&] { replace_file(folder.path() / "no" / "state", Bytes()); }),
            (folder.path() / "no" / "state").string() +
                ": cannot create a temporary beside it: No such file or directory");
  std::filesystem::create_directory(folder.path() / "taken");
  EXPECT_EQ(message_of<RunError>([&] { replace_file(folder.path() / "taken", Bytes()); }),
            (folder.path() / "taken").string() + ": cannot replace: Is a directory");
  EXPECT_EQ(names_in(folder.path()), std::set<std::string>{"taken"});
  EXPECT_THROW(replace_file(folder.path() / "", Bytes()), InputError);
}

TEST(ReplaceFile, LeavesEverythingAsItWasOnAFullDisk) {
  const SmallDisk disk;
  if (!disk.mounted()) GTEST_SKIP() << kNoMount;
  const Path path = disk.path() / "state";
  replace_file(path, text_bytes("old"));
  const std::string error =
      message_of<RunError>([&] { replace_file(path, bytes_of_size(100000)); });
  EXPECT_EQ(error, path.string() + ": cannot write: No space left on device");
  EXPECT_EQ(text_of(path), "old");
  EXPECT_EQ(names_in(disk.path()), std::set<std::string>{"state"});
  // The space is free again.
  replace_file(path, bytes_of_size(40000));
  EXPECT_EQ(read_file(path).size(), 40000u);
}

// Pieces too small to be written at once: the failure comes with the last flush.
TEST(ReplaceFile, LeavesEverythingAsItWasWhenOnlyTheEndDoesNotFit) {
  const SmallDisk disk;
  if (!disk.mounted()) GTEST_SKIP() << kNoMount;
  const Path path = disk.path() / "state";
  replace_file(path, bytes_of_size(32768));
  EXPECT_THROW(replace_file(path,
                            [](const ByteSink& sink) {
                              for (int i = 0; i < 40; ++i) sink(bytes_of_size(1024));
                            }),
               RunError);
  EXPECT_EQ(read_file(path), bytes_of_size(32768));
  EXPECT_EQ(names_in(disk.path()), std::set<std::string>{"state"});
}

TEST(ReplaceFile, LeavesEverythingAsItWasInAReadOnlyFolder) {
  SmallDisk disk;
  if (!disk.mounted()) GTEST_SKIP() << kNoMount;
  const Path path = disk.path() / "state";
  replace_file(path, text_bytes("old"));
  ASSERT_TRUE(disk.make_read_only()) << std::strerror(errno);
  EXPECT_EQ(message_of<RunError>([&] { replace_file(path, text_bytes("new")); }),
            path.string() + ": cannot create a temporary beside it: Read-only file system");
  EXPECT_EQ(text_of(path), "old");
  EXPECT_EQ(names_in(disk.path()), std::set<std::string>{"state"});
}

TEST(ReadFile, SaysWhatIsNotThere) {
  const TemporaryFolder folder;
  const Path path = folder.path() / "missing";
  EXPECT_EQ(message_of<InputError>([&] { read_file(path); }),
            path.string() + ": cannot read: No such file or directory");
  EXPECT_EQ(message_of<InputError>([&] { read_file(folder.path()); }),
            folder.path().string() + ": cannot read: Is a directory");
  EXPECT_THROW(read_file_chunks(path, [](auto) {}), InputError);
}

TEST(ReadFile, InChunksGivesTheSameBytes) {
  const TemporaryFolder folder;
  const Path path = folder.path() / "data";
  Bytes bytes(5 * (std::size_t(1) << 19) + 3);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = std::byte(i % 253);
  replace_file(path, bytes);
  Bytes came;
  read_file_chunks(path, [&](std::span<const std::byte> chunk) {
    EXPECT_LE(chunk.size(), std::size_t(1) << 20);
    came.insert(came.end(), chunk.begin(), chunk.end());
  });
  EXPECT_EQ(came, bytes);
  EXPECT_EQ(read_file(path), bytes);
}

TEST(ReadFile, ReadsFilesThatHaveNoSize) { EXPECT_FALSE(read_file("/proc/self/stat").empty()); }

TEST(DurableLog, KeepsLinesOverReopening) {
  const TemporaryFolder folder;
  const Path path = folder.path() / "log";
  {
    DurableLog log(path);
    log.append_line("one");
    log.append_line("");
    EXPECT_EQ(text_of(path), "one\n\n");
  }
  DurableLog log(path);
  log.append_line("three");
  log.sync();
  EXPECT_EQ(text_of(path), "one\n\nthree\n");
}

TEST(DurableLog, CutsOffALineThatACrashLeftUnfinished) {
  const TemporaryFolder folder;
  const Path path = folder.path() / "log";
  for (const std::size_t tail : {1u, 4096u, 10000u}) {
    std::ofstream(path) << "one\n" << std::string(tail, 'x');
    DurableLog(path).append_line("two");
    EXPECT_EQ(text_of(path), "one\ntwo\n");
  }
  std::ofstream(path) << "never a whole line";
  DurableLog(path).append_line("two");
  EXPECT_EQ(text_of(path), "two\n");
}

TEST(DurableLog, RefusesALineBreakInsideALine) {
  const TemporaryFolder folder;
  DurableLog log(folder.path() / "log");
  EXPECT_THROW(log.append_line("a\nb"), InputError);
  EXPECT_EQ(text_of(folder.path() / "log"), "");
}

TEST(DurableLog, KeepsOnlyWholeLinesOnAFullDisk) {
  const SmallDisk disk;
  if (!disk.mounted()) GTEST_SKIP() << kNoMount;
  const Path path = disk.path() / "log";
  DurableLog log(path);
  const std::string line(9999, 'x');
  std::string expected;
  std::string error;
  while (error.empty() && expected.size() < 1000000) {
    error = message_of<RunError>([&] { log.append_line(line); });
    if (error.empty()) expected += line + "\n";
  }
  EXPECT_EQ(error, path.string() + ": cannot append a line: No space left on device");
  EXPECT_EQ(text_of(path), expected);
  log.append_line("short");  // still fits
  EXPECT_EQ(text_of(path), expected + "short\n");
}

TEST(DurableLog, SaysWhenItCannotBeOpened) {
  SmallDisk disk;
  if (!disk.mounted()) GTEST_SKIP() << kNoMount;
  ASSERT_TRUE(disk.make_read_only()) << std::strerror(errno);
  EXPECT_EQ(message_of<RunError>([&] { DurableLog(disk.path() / "log"); }),
            (disk.path() / "log").string() + ": cannot open for appending: Read-only file system");
}

TEST(FileDescriptor, ClosesItsFileOnce) {
  int fd = -1;
  {
    FileDescriptor a(::open("/dev/null", O_RDONLY));
    fd = a.get();
    FileDescriptor b(std::move(a));
    FileDescriptor c;
    c = std::move(b);
    EXPECT_EQ(c.get(), fd);
    EXPECT_FALSE(b);  // NOLINT: moved from, hence empty
    EXPECT_NE(::fcntl(fd, F_GETFD), -1);
  }
  EXPECT_EQ(::fcntl(fd, F_GETFD), -1);
}

}  // namespace
}  // namespace fedep
