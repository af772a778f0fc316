#include "fedep/message/read_file.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstring>
#include <filesystem>

#include <gtest/gtest.h>

#include "fedep/message/error.h"
#include "fedep/message/test_folder.h"

namespace fedep {
namespace {

namespace fs = std::filesystem;

std::string why(const fs::path& path) {
  return message_of<InputError>([&] { read_file(path); });
}

TEST(OpenFile, RefusesAPipeWithoutWaitingForAWriter) {
  const TemporaryFolder folder;
  const fs::path pipe = folder.path() / "log.jsonl";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(why(pipe), pipe.string() + ": must be a regular file, but is a pipe");
  fs::create_symlink(pipe, folder.path() / "link");
  EXPECT_EQ(why(folder.path() / "link"),
            (folder.path() / "link").string() + ": must be a regular file, but is a pipe");
}

TEST(OpenFile, RefusesADeviceThatNeverEnds) {
  const TemporaryFolder folder;
  const fs::path link = folder.path() / "features.json";
  fs::create_symlink("/dev/zero", link);
  EXPECT_EQ(why(link), link.string() + ": must be a regular file, but is a device or socket");
}

TEST(OpenFile, RefusesASocketAndALinkToItself) {
  const TemporaryFolder folder;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const fs::path path = folder.path() / "socket";
  std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
  const FileDescriptor listening(::socket(AF_UNIX, SOCK_STREAM, 0));
  ASSERT_EQ(::bind(listening.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)),
            0);
  EXPECT_NE(why(path), "");
  fs::create_symlink("self", folder.path() / "self");
  EXPECT_NE(why(folder.path() / "self"), "");
}

TEST(OpenFile, FollowsALinkToARegularFile) {
  const TemporaryFolder folder;
  fs::create_symlink(folder.write("there", std::string_view("abc")), folder.path() / "link");
  EXPECT_EQ(read_file(folder.path() / "link").size(), 3u);
}

TEST(ReadFile, RefusesMoreBytesThanAskedForBeforeItReadsThem) {
  const TemporaryFolder folder;
  const fs::path file = folder.write("recipe.toml", std::string_view("abc"));
  EXPECT_EQ(read_file(file, 3).size(), 3u);
  EXPECT_EQ(message_of<InputError>([&] { read_file(file, 2); }),
            file.string() + ": file must have at most 2 bytes, but has 3");
  fs::resize_file(file, std::uintmax_t(1) << 42);  // 4 TiB of holes
  EXPECT_NE(why(file), "");
}

}  // namespace
}  // namespace fedep
