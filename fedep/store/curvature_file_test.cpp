// What is kept of a last round of curvature is what was written, and of this checkpoint.
#include "fedep/store/curvature_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fedep/message/error.h"
#include "fedep/message/test_folder.h"
#include "fedep/store/durable_file.h"
#include "fedep/store/safetensors/safetensors.h"

namespace fedep {
namespace {

using testing::HasSubstr;

Curvature example() {
  return {.round = 60,
          .mean = {0.5f, -1.25f},
          .sum = {.gradient = {1e-3, 7}, .hessian = {3.0000000000000004, -1, 1e300}}};
}

TEST(CurvatureFile, HoldsEveryBit) {
  const TemporaryFolder folder;
  const auto path = curvature_path(folder.path());
  write_curvature(path, example(), 0xfedcba9876543210);
  EXPECT_EQ(read_curvature(path), (KeptCurvature{example(), 0xfedcba9876543210}));
}

TEST(CurvatureFile, BelongsToOneCheckpoint) {
  const TemporaryFolder folder;
  const auto path = curvature_path(folder.path());
  const auto own = folder.write("checkpoint-60.safetensors", "a state");
  const auto other = folder.write("checkpoint-61.safetensors", "another state");
  write_curvature(path, example(), seal_of(own));
  EXPECT_NO_THROW(check_own_curvature(path, read_curvature(path), own));
  EXPECT_EQ(
      message_of<InputError>([&] { check_own_curvature(path, read_curvature(path), other); }),
      path.string() +
          ": must have been taken at checkpoint-61.safetensors, but was at another checkpoint");
}

TEST(CurvatureFile, WhatIsNotOneIsRefused) {
  const TemporaryFolder folder;
  const auto path = curvature_path(folder.path());
  const auto refusal = [&] { return message_of<InputError>([&] { read_curvature(path); }); };
  write_curvature(path, example(), 1);
  std::vector<std::byte> bytes = read_file(path);
  bytes.back() ^= std::byte(1);
  replace_file(path, bytes);
  EXPECT_THAT(refusal(), HasSubstr("checksum"));

  Curvature wrong = example();
  wrong.sum.hessian.pop_back();
  write_curvature(path, wrong, 1);
  EXPECT_THAT(refusal(), HasSubstr("must be of 2 weights"));
  wrong = example();
  wrong.sum.gradient[0] = std::numeric_limits<double>::infinity();
  write_curvature(path, wrong, 1);
  EXPECT_THAT(refusal(), HasSubstr("gradient"));

  const std::vector<float> values{1, 2};
  const TensorView mean{"mean", {2}, std::span<const float>(values)};
  const auto write = [&](const Metadata& about) {
    write_safetensors(path, std::span(&mean, 1), about);
  };
  write({{"format", "fedep.checkpoint"}});
  EXPECT_THAT(refusal(), HasSubstr("must be a last round of curvature"));
  write({{"format", "fedep.curvature"}, {"version", "2"}});
  EXPECT_THAT(refusal(), HasSubstr("version must be 1"));
  write({{"format", "fedep.curvature"}, {"version", "1"}, {"round", "6x"}});
  EXPECT_THAT(refusal(), HasSubstr("round must be a number, but is \"6x\""));
}

}  // namespace
}  // namespace fedep
