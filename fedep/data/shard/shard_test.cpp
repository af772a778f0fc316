#include "fedep/data/shard/shard.h"

#include <cmath>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "fedep/data/test_files.h"
#include "fedep/message/error.h"
#include "fedep/message/record.h"

namespace fedep {
namespace {

Shard dense_shard() {
  Shard shard{.client = "ward C/7"};
  shard.info.name = "wards";
  shard.info.features = {2};
  shard.info.outputs = 3;
  shard.info.output_names = {"a", "b", "ö"};
  shard.train.size = 2;
  shard.train.dense = {0.1f, -1e-38f, 3, 4};
  shard.train.labels = {2, 0};
  shard.test.size = 1;
  shard.test.dense = {5, 6};
  shard.test.labels = {1};
  return shard;
}

Shard tags_shard() {
  Shard shard{.client = "user"};
  shard.info.features = {10};
  shard.info.sparse = true;
  shard.info.target = TargetKind::tags;
  shard.info.outputs = 4;
  shard.train.size = 2;
  shard.train.sparse = {.offsets = {0, 2, 2}, .columns = {3, 9}, .values = {0.5f, 0.25f}};
  shard.train.tags = {.offsets = {0, 1, 3}, .columns = {0, 1, 3}, .values = {}};
  return shard;
}

Shard read_back(const Shard& shard) { return parse_shard(shard_bytes(shard), "file"); }

void expect_same(const Shard& a, const Shard& b) {
  EXPECT_EQ(a.client, b.client);
  EXPECT_EQ(about_data(a.info), about_data(b.info));
  EXPECT_EQ(a.train, b.train);
  EXPECT_EQ(a.test, b.test);
}

TEST(Shard, ReadsBackWhateverItHolds) {
  expect_same(read_back(dense_shard()), dense_shard());
  expect_same(read_back(tags_shard()), tags_shard());
  Shard real = dense_shard();
  real.info.target = TargetKind::real;
  real.info.outputs = 1;
  real.info.output_names = {};
  real.train.labels = {};
  real.test.labels = {};
  real.train.reals = {1.5f, -2};
  real.test.reals = {0.1f};
  expect_same(read_back(real), real);
  Shard count = real;
  count.info.target = TargetKind::count;
  count.train.reals = {0, 16777216};
  count.test.reals = {3};
  expect_same(read_back(count), count);
  count.train.log_exposure = {0.5f, -2};
  count.test.log_exposure = {0};
  expect_same(read_back(count), count);
  for (const float bad : {-1.0f, 0.5f, INFINITY}) {
    Shard refused = count;
    refused.train.reals[1] = bad;
    EXPECT_THROW(read_back(refused), InputError) << bad;
  }
  count.train.log_exposure[0] = -INFINITY;
  EXPECT_THROW(read_back(count), InputError);
  Shard alone = dense_shard();
  alone.test = {};
  expect_same(read_back(alone), alone);
}

TEST(Shard, KeepsImagesAsBytesWhereTheyWereBytes) {
  Shard shard = dense_shard();
  shard.info.features = {1, 2, 1};
  shard.train.dense = {0, 7 / 255.0f, 1, 254 / 255.0f};
  shard.test.dense = {0.5f, 0};  // 0.5 is no byte
  const Record record = read_record(shard_bytes(shard));
  EXPECT_EQ(record.get<std::uint8_t>("train.bytes"), (std::vector<std::uint8_t>{0, 7, 255, 254}));
  EXPECT_TRUE(record.has("test.dense"));
  expect_same(read_back(shard), shard);
  shard.train.dense[0] = -0.0f;  // a byte has no sign
  EXPECT_TRUE(std::signbit(read_back(shard).train.dense[0]));
}

TEST(Shard, KeepsWholeImagesWhereCropsAreCutFromThem) {
  Shard shard = dense_shard();
  shard.train = {};
  shard.images = ShardImages{.crop = {.side = 3, .crop_side = 2, .channels = 1},
                             .pixels = {1, 2, 3, 4, 5, 6, 7, 8, 9},
                             .labels = {2}};
  const Shard again = read_back(shard);
  ASSERT_TRUE(again.images);
  EXPECT_EQ(again.images->pixels, shard.images->pixels);
  EXPECT_EQ(again.images->labels, shard.images->labels);
  EXPECT_EQ(again.images->crop.crop_side, 2u);
  EXPECT_EQ(again.train_size(), 1u);
  EXPECT_EQ(again.images->projection, nullptr);
}

TEST(Shard, IsRefusedWithAnyByteWrongOrMissing) {
  for (const Shard& shard : {dense_shard(), tags_shard()}) {
    const std::vector<std::byte> whole = shard_bytes(shard);
    for (std::size_t i = 0; i < whole.size(); ++i) {
      std::vector<std::byte> damaged = whole;
      damaged[i] ^= std::byte{16};
      EXPECT_THROW(parse_shard(damaged, "file"), InputError) << "byte " << i;
      damaged.assign(whole.begin(), whole.begin() + std::ptrdiff_t(i));
      EXPECT_THROW(parse_shard(damaged, "file"), InputError) << "length " << i;
    }
    EXPECT_EQ(
        message_of<InputError>([&] { parse_shard({}, "ward.shard"); }).rfind("ward.shard: ", 0),
        0u);
  }
}

// Whole, with checksums that are right, and yet not a shard.
class ShardFrom : public testing::Test {
 protected:
  ShardFrom() : record_(read_record(shard_bytes(dense_shard()))) {}
  template <class T>
  std::vector<T>& values(const std::string& name) {
    for (Section& section : record_.sections) {
      if (section.name == name) return std::get<std::vector<T>>(section.values);
    }
    throw std::runtime_error(name);
  }
  void change(const std::string& section, const std::string& key, const nlohmann::json& value) {
    auto& bytes = values<std::uint8_t>(section);
    auto json = nlohmann::ordered_json::parse(bytes.begin(), bytes.end());
    json[key] = value;
    const std::string text = json.dump();
    bytes.assign(text.begin(), text.end());
  }
  void change_header(const std::string& key, const nlohmann::json& value) {
    change("header", key, value);
  }
  std::string refusal() {
    return message_of<InputError>([&] { parse_shard(record_bytes(view(record_)), "file"); });
  }

  Record record_;
};

TEST_F(ShardFrom, AnotherVersionIsRefused) {
  change_header("version", 2);
  EXPECT_EQ(refusal(), "file: version must be 1, but is 2");
}

TEST_F(ShardFrom, AnotherFormatIsRefused) {
  change_header("format", "fedep.site");
  EXPECT_EQ(refusal(), "file: format must be fedep.shard, but is not");
}

TEST_F(ShardFrom, CountsAndLabelsThatDoNotFitAreRefused) {
  change_header("train", 3);
  EXPECT_NE(refusal(), "");
  change_header("train", 2);
  EXPECT_EQ(refusal(), "");
  values<std::int32_t>("train.labels")[1] = 3;
  EXPECT_EQ(refusal(), "file: labels must be below 3, but one is 3");
  values<std::int32_t>("train.labels")[1] = -1;
  EXPECT_NE(refusal(), "");
  values<std::int32_t>("train.labels") = {0};
  EXPECT_NE(refusal(), "");
}

TEST_F(ShardFrom, SparseRowsThatDoNotFitAreRefused) {
  record_ = read_record(shard_bytes(tags_shard()));
  values<std::int32_t>("train.sparse.columns")[1] = 10;
  EXPECT_EQ(refusal(), "file: train.sparse.columns must be below 10, but one is 10");
  values<std::int32_t>("train.sparse.columns")[1] = 9;
  values<std::int64_t>("train.tags.offsets")[1] = 4;
  EXPECT_EQ(refusal(), "file: train.tags.offsets must ascend from 0, but do not");
  values<std::int64_t>("train.tags.offsets")[1] = 1;
  EXPECT_EQ(refusal(), "");
  values<std::int32_t>("train.tags.columns") = {0, 3, 1};
  EXPECT_EQ(refusal(), "file: train.tags.columns of row 1 must ascend, but do not");
  values<std::int32_t>("train.tags.columns") = {0, 3, 3};
  EXPECT_NE(refusal(), "");
  values<std::int32_t>("train.tags.columns") = {0, 1, 3};
  values<float>("train.tags.values") = {1, 1, 1};
  EXPECT_NE(refusal(), "");
}

TEST_F(ShardFrom, ShapesThatCannotBeAreRefused) {
  const std::int64_t half = std::int64_t(1) << 32;  // half * half is 0 in 64 bits
  values<float>("train.dense").clear();
  values<float>("test.dense").clear();
  for (const nlohmann::json& features : std::vector<nlohmann::json>{
           {half, half}, {half * 65536, 65536}, {-1}, {0}, {65536, 65536}}) {
    change("about", "features", features);
    EXPECT_TRUE(refusal().starts_with("file: about: ")) << features << ": " << refusal();
  }
}

TEST_F(ShardFrom, CountsWhoseProductBeginsAgainAtZeroAreRefused) {
  values<float>("train.dense").clear();
  change_header("train", std::uint64_t(1) << 63);  // twice that, of 2 features, is 0 in 64 bits
  EXPECT_TRUE(refusal().starts_with("file: train.: features must be of ")) << refusal();
}

TEST_F(ShardFrom, WhatTheDataAreMustFitTogether) {
  change("about", "target", "tag");
  EXPECT_EQ(refusal(), "file: target must be label, binary, tags, real, count, but is \"tag\"");
  change("about", "target", "binary");  // which has one output
  EXPECT_EQ(refusal(), "file: about: outputs must be in [1, 1], but is 3");
  change("about", "target", "label");
  EXPECT_EQ(refusal(), "");
  change("about", "output_names", {"a", "b"});
  EXPECT_EQ(refusal(), "file: about: output_names must be of 3 elements, but is of 2");
  change("about", "output_names", nlohmann::json::array());
  change("about", "table", "{}");
  EXPECT_EQ(refusal(),
            "file: table: must hold the features of a table as a run writes them, but does not");
}

TEST_F(ShardFrom, ImagesThatDoNotFitTheirCropsAreRefused) {
  Shard shard = dense_shard();
  shard.info.features = {2, 2, 1};
  shard.test = {};
  shard.train = {};
  shard.images = ShardImages{.crop = {.side = 3, .crop_side = 2, .channels = 1},
                             .pixels = {1, 2, 3, 4, 5, 6, 7, 8, 9},
                             .labels = {2}};
  record_ = read_record(shard_bytes(shard));
  EXPECT_EQ(refusal(), "");
  const auto crop = [&](std::uint64_t side, std::uint64_t crop_side, std::uint64_t channels) {
    change_header("crop", {{"side", side}, {"crop_side", crop_side}, {"channels", channels}});
    return refusal();
  };
  EXPECT_EQ(crop(3, 4, 1), "file: crop: crop_side must be in [1, 3], but is 4");
  EXPECT_NE(crop(3, 0, 1), "");
  EXPECT_NE(crop(4, 2, 1), "");
  values<std::uint8_t>("train.images").clear();
  EXPECT_NE(crop(std::uint64_t(1) << 32, 2, 1), "");  // its square is 0 in 64 bits
  EXPECT_NE(crop(3, 2, 0), "");
}

}  // namespace
}  // namespace fedep
