#include "fedep/data/data_file.h"

#include <sys/stat.h>

#include <string>

#include <gtest/gtest.h>
#include <zlib.h>

#include "fedep/data/test_files.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

namespace fs = std::filesystem;

fs::path write_gzip(const TemporaryFolder& folder, const std::string& piece, int times) {
  const fs::path path = folder.path() / "table.csv.gz";
  gzFile out = gzopen(path.c_str(), "wb1");
  for (int i = 0; i < times; ++i) gzwrite(out, piece.data(), unsigned(piece.size()));
  gzclose(out);
  return path;
}

TEST(GzipFile, ReadsAPackedFileAndAPlainOneAlike) {
  const TemporaryFolder folder;
  const std::string text = "a,b\n1,2\n";
  for (const fs::path& path :
       {write_gzip(folder, text, 1), folder.write("plain", std::string_view(text))}) {
    const auto bytes = read_gzip_file("table", path);
    EXPECT_EQ(std::string(bytes.begin(), bytes.end()), text);
  }
}

TEST(GzipFile, RefusesABombAfterABoundedPartOfIt) {
  const TemporaryFolder folder;
  const fs::path bomb = write_gzip(folder, std::string(1 << 20, '0'), 512);
  ASSERT_LT(fs::file_size(bomb), 4u << 20);
  GzipFile file("table", bomb);
  std::vector<char> piece(1 << 20);
  std::uint64_t came = 0;
  const std::string why = message_of<InputError>([&] {
    while (const std::size_t n = file.read(piece)) came += n;
  });
  EXPECT_NE(why.find("if it is sound, unpack it first"), std::string::npos) << why;
  EXPECT_LE(came, UnpackBudget::kFree + UnpackBudget::kMostRatio * fs::file_size(bomb));
}

TEST(GzipFile, LetsAFileOfRepeatedRowsThrough) {
  const TemporaryFolder folder;
  EXPECT_EQ(read_gzip_file("table", write_gzip(folder, std::string(1 << 20, '0'), 60)).size(),
            60u << 20);
}

TEST(DataFile, RefusesAPipeInADataFolder) {
  const TemporaryFolder folder;
  const fs::path pipe = folder.path() / "labels.u8";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const auto& read : {read_data_file, read_gzip_file}) {
    EXPECT_EQ(message_of<InputError>([&] { read("femnist", pipe); }),
              "femnist: " + pipe.string() + ": must be a regular file, but is a pipe");
  }
}

TEST(DataFile, RefusesHolesThatMemoryDoesNotHold) {
  const TemporaryFolder folder;
  const fs::path file = folder.write("images.u8", std::string_view("x"));
  fs::resize_file(file, std::uintmax_t(1) << 42);
  const std::string why = message_of<InputError>([&] { read_data_file("femnist", file); });
  EXPECT_NE(why.find("must fit into memory"), std::string::npos) << why;
}

}  // namespace
}  // namespace fedep
