// In which order files are brought to the disk, and what happens where it has no locks. What a power cut
// leaves is tested in test/crash; here the calls themselves are watched, or fail, which this program does
// in the C library's place.
#include <dlfcn.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fedep/message/test_folder.h"
#include "fedep/store/durable_file.h"
#include "fedep/store/test_kept_run.h"

namespace {

namespace fs = std::filesystem;

std::vector<std::string>* watched = nullptr;  // "sync NAME", "rename NAME", "truncate", in order

int lock_error = 0;  // of flock; 0: it locks

void note_sync(int fd) {
  if (watched == nullptr) return;
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  watched->push_back("sync " + fs::read_symlink(link).filename().string());
}

template <class Function>
Function* next(Function*, const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

int fsync(int fd) {
  note_sync(fd);
  return next(&fsync, "fsync")(fd);
}
int fdatasync(int fd) {
  note_sync(fd);
  return next(&fdatasync, "fdatasync")(fd);
}
int rename(const char* from, const char* to) noexcept {
  if (watched != nullptr) watched->push_back("rename " + fs::path(to).filename().string());
  return next(&rename, "rename")(from, to);
}
int ftruncate(int fd, off_t size) noexcept {
  if (watched != nullptr) watched->push_back("truncate");
  return next(&ftruncate, "ftruncate")(fd, size);
}
int flock(int fd, int operation) noexcept {
  if (lock_error == 0) return next(&flock, "flock")(fd, operation);
  errno = lock_error;
  return -1;
}

}  // extern "C"

namespace fedep {
namespace {

using testing::ElementsAre;
using Calls = std::vector<std::string>;

template <class Work>
Calls calls_of(Work work) {
  Calls calls;
  watched = &calls;
  work();
  watched = nullptr;
  return calls;
}

// Where a call comes for the first time, from `from` on; the end if it does not.
std::size_t place_of(const Calls& calls, const std::string& call, std::size_t from = 0) {
  return std::size_t(std::find(calls.begin() + std::ptrdiff_t(from), calls.end(), call) -
                     calls.begin());
}

TEST(SafeOrder, AReplacedFileIsOnTheDiskBeforeItHasItsNameAndThenItsNameIs) {
  const TemporaryFolder folder;
  const Calls calls =
      calls_of([&] { replace_file(folder.path() / "state", std::vector<std::byte>(3)); });
  EXPECT_THAT(calls, ElementsAre("truncate", "sync .state.tmp", "rename state",
                                 "sync " + folder.path().filename().string()));
}

TEST(SafeOrder, ALogIsOnTheDiskWhenItIsAskedToBe) {
  const TemporaryFolder folder;
  DurableLog log(folder.path() / "log");
  EXPECT_THAT(calls_of([&] { log.append_line("one"); }), ElementsAre());
  EXPECT_THAT(calls_of([&] { log.sync(); }), ElementsAre("sync log"));
}

// Another one may be adding a line to a file of whole lines, which must not be cut off.
TEST(SafeOrder, ALogIsTruncatedOnlyWhereItEndsInAPieceOfALine) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "log";
  const std::string synced = "sync " + folder.path().filename().string();
  for (const std::string text : {"", "one\n"}) {
    std::ofstream(path) << text;
    EXPECT_THAT(calls_of([&] { DurableLog log(path); }), ElementsAre(synced));
  }
  std::ofstream(path) << "one\ntw";
  EXPECT_THAT(calls_of([&] { DurableLog log(path); }), ElementsAre("truncate", synced));
  EXPECT_EQ(fs::file_size(path), 4u);
}

TEST(SafeOrder, AFolderIsOnTheDiskInTheOneAboveBeforeTheNextIsMade) {
  const TemporaryFolder folder;
  const std::string above = folder.path().filename().string();
  const fs::path deep = folder.path() / "a" / "b";
  const std::string upper = folder.path().parent_path().filename().string();
  EXPECT_THAT(calls_of([&] { make_folder(deep); }),
              ElementsAre("sync " + upper, "sync " + above, "sync a"));
  EXPECT_TRUE(fs::is_directory(deep));
  // Whoever made it may have died before it was there.
  EXPECT_THAT(calls_of([&] { make_folder(deep); }), ElementsAre("sync a"));
  EXPECT_THAT(calls_of([&] { make_folder(deep / ""); }), ElementsAre("sync a"));
}

TEST(SafeOrder, TheLogAndTheFactorsAreOnTheDiskBeforeTheCheckpointThatReliesOnThem) {
  const TemporaryFolder folder;
  KeptTestRun run(folder.path() / "run");
  const Calls calls = calls_of([&] { run.play_until(5); });
  std::size_t before = 0;
  for (const int round : {1, 2, 3, 4, 5}) {
    const std::size_t renamed =
        place_of(calls, fmt::format("rename checkpoint-{}.safetensors", round), before);
    ASSERT_LT(renamed, calls.size()) << round;
    EXPECT_LT(place_of(calls, "sync log.jsonl", before), renamed) << round;
    if (round > 3) {
      const std::string site =
          fmt::format("rename {:016x}-{}.site", KeptTestRun::client_of(round - 1), round - 1);
      EXPECT_LT(place_of(calls, site, before), renamed) << round;
      EXPECT_LT(place_of(calls, "sync sites", before), renamed) << round;
    }
    EXPECT_LT(place_of(calls, "sync run", renamed), calls.size()) << round;
    before = renamed;
  }
}

TEST(SafeOrder, ALogIsSyncedForCheckpointsAndNotForRounds) {
  const TemporaryFolder folder;
  const auto syncs = [&](const std::string& every) {
    const Calls calls = calls_of(
        [&] { KeptTestRun(folder.path() / every, {"checkpoint.every=" + every}).play_until(7); });
    return std::count(calls.begin(), calls.end(), "sync log.jsonl");
  };
  EXPECT_EQ(syncs("1"), 8);  // and once for the end
  EXPECT_EQ(syncs("3"), 4);
}

class WithoutLocks : public testing::TestWithParam<int> {
 protected:
  WithoutLocks() { lock_error = GetParam(); }
  ~WithoutLocks() override { lock_error = 0; }

  const TemporaryFolder folder_;
};

TEST_P(WithoutLocks, FilesAreReplacedAndNothingElseIsLeft) {
  const fs::path path = folder_.path() / "state";
  for (const std::size_t size : {3u, 5u}) {
    replace_file(path, std::vector<std::byte>(size));
    EXPECT_EQ(read_file(path).size(), size);
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), {}), 1);
}

TEST_P(WithoutLocks, WritersOfOneFileDoNotMeet) {
  const fs::path path = folder_.path() / "state";
  const auto write_many = [&](int value) {
    const std::vector<std::byte> bytes(100000, std::byte(value));
    for (int i = 0; i < 20; ++i) replace_file(path, bytes);
  };
  std::thread other(write_many, 1);
  write_many(2);
  other.join();
  const std::vector<std::byte> came = read_file(path);
  EXPECT_EQ(came, std::vector<std::byte>(100000, came.at(0)));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), {}), 1);
}

INSTANTIATE_TEST_SUITE_P(Errors, WithoutLocks, testing::Values(ENOSYS, ENOLCK, EOPNOTSUPP));

TEST(Locks, ThatFailForAnotherReasonAreAnError) {
  const TemporaryFolder folder;
  lock_error = EIO;
  EXPECT_THROW(replace_file(folder.path() / "state", std::vector<std::byte>(3)), RunError);
  lock_error = 0;
}

}  // namespace
}  // namespace fedep
