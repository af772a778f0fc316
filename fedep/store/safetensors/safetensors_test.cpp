#include "fedep/store/safetensors/safetensors.h"

#include <sys/mount.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <numeric>
#include <sstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fedep/message/error.h"
#include "fedep/message/test_folder.h"
#include "fedep/store/durable_file.h"

namespace fedep {
namespace {

using testing::HasSubstr;
using Path = std::filesystem::path;

class Safetensors : public testing::Test {
 protected:
  // Writes header and data as they are.
  void write_raw(const std::string& header, const std::string& data) const {
    const std::uint64_t size = header.size();
    std::string length(8, '\0');
    std::memcpy(length.data(), &size, 8);
    write_text(length + header + data);
  }
  void write_text(const std::string& text) const { std::ofstream(path_, std::ios::binary) << text; }
  std::string text() const { return text_of(path_); }
  // What reading the file is refused with, less the path every refusal starts with.
  std::string refusal(Finite finite = Finite::any) const {
    try {
      read_safetensors(path_, finite);
    } catch (const InputError& error) {
      const std::string what = error.what();
      EXPECT_TRUE(what.starts_with(path_.string() + ": ")) << what;
      EXPECT_EQ(what.find('\n'), std::string::npos) << what;
      return what.substr(path_.string().size() + 2);
    }
    return "";
  }
  std::string refusal(const std::string& header, const std::string& data) const {
    write_raw(header, data);
    return refusal();
  }

  TemporaryFolder folder_;
  Path path_ = folder_.path() / "x.safetensors";
};

std::vector<Tensor> varied() {
  return {{"bytes", {3}, std::vector<std::uint8_t>{1, 2, 255}},
          {"eta.w", {2, 3}, std::vector<float>{1, -2, 3.5f, 0, -0.f, 1e-45f}},
          {"lambda", {}, std::vector<float>{0.25f}},
          {"none", {0, 7}, std::vector<std::int32_t>()},
          {"d", {1, 1, 2}, std::vector<double>{1e300, -5e-324}},
          {"i", {2}, std::vector<std::int32_t>{-1, 1 << 30}},
          {"l", {1}, std::vector<std::int64_t>{INT64_MIN}}};
}

const Metadata kMetadata = {{"round", "401"}, {"recipe", "a = \"b\"\n[c]\n"}, {"ä", ""}};

std::vector<TensorView> views(const std::vector<Tensor>& tensors) {
  std::vector<TensorView> out;
  for (const Tensor& t : tensors) out.push_back({t.name, t.shape, view(t.values)});
  return out;
}

TEST_F(Safetensors, GiveBackWhatWasWritten) {
  const auto tensors = varied();
  write_safetensors(path_, views(tensors), kMetadata);
  const SafetensorsFile file = read_safetensors(path_);
  EXPECT_EQ(file.tensors, tensors);
  EXPECT_EQ(file.metadata, kMetadata);
  EXPECT_EQ(file.get<float>("lambda"), std::vector<float>{0.25f});

  write_safetensors(path_, {}, {});
  EXPECT_TRUE(read_safetensors(path_).tensors.empty());
  EXPECT_TRUE(read_safetensors(path_).metadata.empty());
}

TEST_F(Safetensors, HaveBytesThatDependOnTheArgumentsAlone) {
  const auto tensors = varied();
  write_safetensors(path_, views(tensors), kMetadata);
  const std::string first = text();
  const SafetensorsFile file = read_safetensors(path_);
  write_safetensors(path_, views(file.tensors), file.metadata);
  EXPECT_EQ(text(), first);
}

// The whole file, so that no later change goes unnoticed. Format: the safetensors README.
TEST_F(Safetensors, HaveTheDocumentedLayout) {
  const std::vector<float> values = {1.f, -2.f};
  const std::vector<TensorView> tensors = {{"w", {2}, std::span(values)}};
  write_safetensors(path_, tensors, {{"round", "1"}});
  const std::string came = text();
  std::uint64_t size = 0;
  std::memcpy(&size, came.data(), 8);
  EXPECT_EQ(size % 8, 0u);
  ASSERT_EQ(came.size(), 8 + size + 8);
  EXPECT_THAT(came.substr(8),
              testing::StartsWith(R"({"__metadata__":{"round":"1","xxh3.__metadata__":")"));
  EXPECT_THAT(came, HasSubstr(R"("},"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})"));
  EXPECT_EQ(std::memcmp(came.data() + 8 + size, values.data(), 8), 0);
}

TEST_F(Safetensors, AlignEveryTensorAndKeepTheGivenOrderOfNames) {
  write_safetensors(path_, views(varied()), {});
  const std::string came = text();
  std::size_t last = 0;
  for (const Tensor& tensor : varied()) {
    const std::size_t at = came.find(fmt::format("\"{}\":{{", tensor.name));
    ASSERT_NE(at, std::string::npos);
    EXPECT_GT(at, last);
    last = at;
    const std::size_t offset = std::stoul(came.substr(came.find("offsets\":[", at) + 10));
    const std::size_t n = std::visit([](const auto& v) { return sizeof(v[0]); }, tensor.values);
    EXPECT_EQ(offset % n, 0u) << tensor.name;
  }
}

TEST_F(Safetensors, ReadFilesOfOthersWithoutChecksums) {
  write_raw(R"({"b":{"dtype":"U8","shape":[2],"data_offsets":[4,6]},)"
            R"("a":{"dtype":"I32","shape":[1,1],"data_offsets":[0,4]}}  )",
            std::string("\1\0\0\0\2\3", 6));
  const SafetensorsFile file = read_safetensors(path_);
  EXPECT_EQ(file.tensors, (std::vector<Tensor>{{"b", {2}, std::vector<std::uint8_t>{2, 3}},
                                               {"a", {1, 1}, std::vector<std::int32_t>{1}}}));
  EXPECT_EQ(refusal("{}", ""), "");
}

// One bit of every byte; another one in each.
TEST_F(Safetensors, RefuseAnyFlippedBit) {
  const std::vector<Tensor> tensors = {varied()[0], varied()[2]};
  write_safetensors(path_, views(tensors), {{"round", "41"}});
  const std::string whole = text();
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = char(damaged[i] ^ (1 << i % 8));
    write_text(damaged);
    EXPECT_NE(refusal(), "") << "byte " << i;
  }
}

TEST_F(Safetensors, RefuseAnyTruncation) {
  const std::vector<Tensor> tensors = {varied()[0], varied()[2]};
  write_safetensors(path_, views(tensors), {});
  const std::string whole = text();
  for (std::size_t n = 0; n < whole.size(); ++n) {
    write_text(whole.substr(0, n));
    EXPECT_NE(refusal(), "") << n;
  }
  write_text(whole + "x");
  EXPECT_EQ(refusal(), "tensors must cover all 8 bytes of data, but cover 7");
}

TEST_F(Safetensors, RefuseAHeaderThatIsTooLong) {
  write_text("");
  EXPECT_EQ(refusal(), "must start with the 8 bytes of a safetensors file, but has 0");
  write_text(std::string(7, '\1'));
  EXPECT_EQ(refusal(), "must start with the 8 bytes of a safetensors file, but has 7");
  write_text(std::string(8, '\xff') + "{}");
  EXPECT_EQ(refusal(), "header must have at most 2 bytes, but claims 18446744073709551615");
  // A file that really is that long, though it takes no room on disk.
  write_raw("", "");
  std::filesystem::resize_file(path_, 300'000'000);
  std::fstream(path_, std::ios::in | std::ios::out | std::ios::binary)
      << std::string("\x01\xe1\xf5\x05\0\0\0\0", 8);
  EXPECT_EQ(refusal(), "header must have at most 100000000 bytes, but claims 100000001");
}

// 2^50 bytes, claimed by header and offsets alike.
TEST_F(Safetensors, AllocateNothingForDataThatAreNotThere) {
  EXPECT_THAT(refusal(R"({"a":{"dtype":"U8","shape":[1125899906842624],)"
                      R"("data_offsets":[0,1125899906842624]}})",
                      "x"),
              HasSubstr("must end in [0, 1]"));
}

TEST_F(Safetensors, RefuseWrongChecksums) {
  write_safetensors(path_, views(varied()), {});
  std::string damaged = text();
  damaged.back() = char(damaged.back() ^ 1);
  write_text(damaged);
  EXPECT_THAT(refusal(), HasSubstr("tensor bytes must have checksum "));

  write_safetensors(path_, views(varied()), {{"round", "41"}});
  damaged = text();
  damaged.replace(damaged.find("\"41\""), 4, "\"40\"");
  write_text(damaged);
  EXPECT_THAT(refusal(), HasSubstr("header must have checksum "));

  EXPECT_EQ(refusal(R"({"__metadata__":{"xxh3.a":"0"}})", ""),
            "checksum xxh3.a must be that of a tensor, but there is no such tensor");

  write_safetensors(path_, views(varied()), {});
  damaged = text();
  damaged.replace(damaged.find("xxh3.eta.w"), 4, "xxh2");
  write_text(damaged);
  EXPECT_EQ(refusal(), "checksum xxh3.eta.w must be present as others are, but is not");
}

TEST_F(Safetensors, RefuseNaNAndInfinityOnlyWhenAsked) {
  for (const float bad : {NAN, INFINITY}) {
    const std::vector<Tensor> tensors = {{"w", {3}, std::vector<float>{0, 1, bad}}};
    write_safetensors(path_, views(tensors), {});
    EXPECT_EQ(refusal(Finite::any), "");
    EXPECT_EQ(refusal(Finite::required), "tensor w must be finite, but element 2 is not");
  }
  write_safetensors(path_, views(varied()), {});
  EXPECT_EQ(refusal(Finite::required), "");
}

TEST_F(Safetensors, AreNotWrittenFromWhatDoesNotFit) {
  const std::vector<float> two = {1, 2};
  const auto write = [&](const std::vector<TensorView>& tensors, const Metadata& metadata) {
    try {
      write_safetensors(path_, tensors, metadata);
    } catch (const InputError& error) {
      EXPECT_FALSE(std::filesystem::exists(path_));
      return std::string(error.what()).substr(path_.string().size() + 2);
    }
    return std::string();
  };
  const std::span<const float> values(two);
  EXPECT_EQ(write({{"w", {3}, values}}, {}), "shape of tensor w must be of 2 elements, but is [3]");
  EXPECT_EQ(write({{"w", {-1, -2}, values}}, {}),
            "shape of tensor w must be of 2 elements, but is [-1, -2]");
  EXPECT_EQ(write({{"w", {}, values}}, {}), "shape of tensor w must be of 2 elements, but is []");
  EXPECT_THAT(write({{"w", {2}, values}, {"w", {2}, values}}, {}), HasSubstr("w comes again"));
  EXPECT_THAT(write({{"__metadata__", {2}, values}}, {}), HasSubstr("must differ"));
  EXPECT_EQ(write({}, {{"xxh3.w", "0"}}), "metadata key must not start with xxh3., but is xxh3.w");
  EXPECT_EQ(write({{"\xff", {2}, values}}, {}), "names and metadata must be UTF-8, but are not");
}

TEST_F(Safetensors, SayWhatIsMissingOrOfAnotherType) {
  write_safetensors(path_, views(varied()), {});
  const SafetensorsFile file = read_safetensors(path_);
  const auto message = [&](auto call) {
    try {
      call();
    } catch (const InputError& error) {
      return std::string(error.what()).substr(path_.string().size());
    }
    return std::string();
  };
  EXPECT_TRUE(file.has("d"));
  EXPECT_EQ(message([&] { file.get<float>("q"); }),
            ": tensor q must be present, but is not among its 7");
  EXPECT_EQ(message([&] { file.get<float>("d"); }), ": tensor d must hold F32, but holds F64");
  EXPECT_THROW(read_safetensors(folder_.path() / "missing"), InputError);
  EXPECT_THROW(read_safetensors(folder_.path()), InputError);
  EXPECT_THROW(read_safetensors("/dev/null"), InputError);
}

TEST_F(Safetensors, LeaveTheOldFileOnAFullDisk) {
  const Path disk = folder_.path() / "disk";
  std::filesystem::create_directory(disk);
  if (::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=64k") != 0) {
    GTEST_SKIP() << "mounting a tmpfs is not permitted here (run as root)";
  }
  write_safetensors(disk / "x", views(varied()), {});
  const std::vector<float> many(100000);
  const std::vector<TensorView> large = {{"w", {100000}, std::span(many)}};
  EXPECT_THROW(write_safetensors(disk / "x", large, {}), RunError);
  EXPECT_EQ(read_safetensors(disk / "x").tensors, varied());
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(disk), {}), 1);
  ::umount2(disk.c_str(), MNT_DETACH);
}

// A python3 on the PATH that has the reference implementation; empty if there is none.
std::string python_with_safetensors() {
  const char* variable = std::getenv("PATH");
  std::istringstream paths(variable == nullptr ? "" : variable);
  for (std::string folder; std::getline(paths, folder, ':');) {
    const std::string python = folder + "/python3";
    if (::access(python.c_str(), X_OK) != 0) continue;
    const std::string probe = "'" + python + "' -c 'import safetensors.numpy' 2>/dev/null";
    if (std::system(probe.c_str()) == 0) return python;
  }
  return "";
}

TEST_F(Safetensors, AgreeWithTheReferenceImplementation) {
  const std::string python = python_with_safetensors();
  if (python.empty()) GTEST_SKIP() << "no python3 on the PATH has the package safetensors";
  write_safetensors(path_, views(varied()), kMetadata);
  // Python reads our file, checks it, and writes it anew with the tensors it read.
  std::ofstream(folder_.path() / "check.py") << R"(
import sys
import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file
with safe_open(sys.argv[1], framework="np") as f:
    tensors = {k: f.get_tensor(k) for k in f.keys()}
    metadata = f.metadata()
assert metadata["round"] == "401" and metadata["recipe"] == 'a = "b"\n[c]\n', metadata
expected = {"bytes": (np.uint8, (3,)), "eta.w": (np.float32, (2, 3)), "lambda": (np.float32, ()),
            "none": (np.int32, (0, 7)), "d": (np.float64, (1, 1, 2)), "i": (np.int32, (2,)),
            "l": (np.int64, (1,))}
assert {k: (v.dtype, v.shape) for k, v in tensors.items()} == expected, tensors
assert tensors["eta.w"].ravel().tolist()[:3] == [1, -2, 3.5]
assert tensors["l"][0] == -2**63
save_file(tensors, sys.argv[1], metadata)
)";
  const std::string command =
      fmt::format("'{}' '{}' '{}'", python, (folder_.path() / "check.py").string(), path_.string());
  ASSERT_EQ(std::system(command.c_str()), 0);
  const SafetensorsFile file = read_safetensors(path_);
  EXPECT_EQ(file.metadata, kMetadata);
  ASSERT_EQ(file.tensors.size(), varied().size());
  for (const Tensor& tensor : varied()) EXPECT_EQ(file.tensor(tensor.name), tensor);
}

}  // namespace
}  // namespace fedep
