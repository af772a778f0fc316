#include "fedep/message/sparse_message.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fedep/message/message_bytes.h"
#include "fedep/random/stream.h"

namespace fedep {
namespace {

using V = HostVector<float>;
using testing::HasSubstr;

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return std::ranges::equal(a, b, {}, std::bit_cast<std::uint32_t, float>,
                            std::bit_cast<std::uint32_t, float>);
}

// Runs of zeros and of numbers, some of them odd.
std::vector<float> numbers_with_zeros(Stream& stream, std::size_t size) {
  constexpr float kOdd[] = {-0.0f, std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN(),
                            std::numeric_limits<float>::denorm_min()};
  std::vector<float> out;
  while (out.size() < size) {
    const std::size_t length = 1 + stream.below(stream.below(2) == 0 ? 12 : 200);
    const bool zeros = stream.below(2) == 0;
    for (std::size_t i = 0; i < length && out.size() < size; ++i) {
      const std::uint64_t odd = stream.below(20);
      out.push_back(zeros ? 0.0f : odd < 4 ? kOdd[odd] : float(stream.normal()));
    }
  }
  return out;
}

TEST(SparseArray, GivesEveryBitBack) {
  for (std::uint32_t trial = 0; trial < 400; ++trial) {
    Stream stream({.seed = 1, .step = trial});
    const std::vector<float> numbers = numbers_with_zeros(stream, trial % 300);
    const SparseArray kept = without_zeros(std::span(numbers));
    EXPECT_TRUE(same_bits(expanded(kept).span(), numbers)) << trial;
    const SparseArray again = without_zeros(expanded(kept).span());
    EXPECT_EQ(kept.runs, again.runs) << trial;
    EXPECT_TRUE(same_bits(kept.values, again.values)) << trial;
  }
}

TEST(SparseArray, LeavesAllZerosOutThatStandTogetherAndNoOthers) {
  for (std::uint32_t trial = 0; trial < 400; ++trial) {
    Stream stream({.seed = 2, .step = trial});
    const std::vector<float> numbers = numbers_with_zeros(stream, trial % 300);
    const SparseArray kept = without_zeros(std::span(numbers));
    std::size_t alone = 0, left_out = 0, zeros = 0;  // what the definition says
    for (std::size_t i = 0; i <= numbers.size(); ++i) {
      if (i < numbers.size() && std::bit_cast<std::uint32_t>(numbers[i]) == 0) {
        ++zeros;
        continue;
      }
      (zeros >= kZerosLeftOut ? left_out : alone) += zeros;
      zeros = 0;
    }
    EXPECT_EQ(kept.values.size(), numbers.size() - left_out) << trial;
    EXPECT_EQ(kept.is_whole(), left_out == 0) << trial;
    // Runs are never dearer than the zeros that they spare.
    EXPECT_LE(kept.runs.size() * sizeof(std::int64_t),
              2 * sizeof(std::int64_t) + left_out * sizeof(float));
  }
}

TEST(SparseArray, OfNothingButZerosIsNothing) {
  const SparseArray kept = without_zeros(std::span<const float>(std::vector<float>(5000, 0.0f)));
  EXPECT_TRUE(kept.runs.empty());
  EXPECT_TRUE(kept.values.empty());
  EXPECT_EQ(expanded(kept), V(5000));
  EXPECT_EQ(without_zeros(std::span<const float>()), SparseArray{});
}

Message message_of(Family family, std::size_t size) {
  Message out = flat_like(V(size), family);
  for (std::size_t i = size / 3; i < size / 2; ++i) out.eta()[i] = float(i) + 0.5f;
  const auto lambda = out.lambda_span();
  lambda[lambda.size() - 1] = 3;
  return out;
}

TEST(SparseMessage, TravelsAsARecord) {
  for (const Family family : {Family::isotropic, Family::diagonal, Family::full}) {
    for (const std::size_t size : {std::size_t(1), std::size_t(7), std::size_t(100)}) {
      const Message message = message_of(family, size);
      const SparseMessage kept = without_zeros(message);
      EXPECT_EQ(expanded(kept), message);
      std::vector<SectionView> sections;
      append_sections(sections, "factor", kept);
      Record record = read_record(record_bytes(sections));
      EXPECT_EQ(extract_sparse_message(record, "factor"), kept);
    }
  }
}

TEST(SparseMessage, OfWhichNothingIsLeftOutIsWrittenAsMessagesAre) {
  const Message message(V{1, 0, 3}, V{4, 5, 0});
  const SparseMessage kept = without_zeros(message);
  std::vector<SectionView> sparse, plain;
  append_sections(sparse, "factor", kept);
  append_sections(plain, "factor", message);
  EXPECT_EQ(record_bytes(sparse), record_bytes(plain));
  // What was written before zeros were left out is read as it is.
  const Message zeros = flat_like(V(50), Family::diagonal);
  std::vector<SectionView> old;
  append_sections(old, "factor", zeros);
  Record record = read_record(record_bytes(old));
  EXPECT_EQ(expanded(extract_sparse_message(record, "factor")), zeros);
}

// What a reader says of an array of 40 numbers with these runs and so many values.
std::string refusal(std::int64_t size, std::vector<std::int64_t> runs, std::size_t values) {
  SparseMessage message{.family = Family::isotropic, .eta = {}, .lambda = {}};
  message.lambda = without_zeros(std::span<const float>(std::vector<float>{1.0f}));
  const SparseArray eta{
      .size = size, .runs = std::move(runs), .values = std::vector<float>(values, 1.0f)};
  std::vector<SectionView> sections;
  append_family(sections, "f", Family::isotropic);
  sections.push_back({"f.eta.size", std::span(&eta.size, 1)});
  sections.push_back({"f.eta.runs", std::span(eta.runs)});
  sections.push_back({"f.eta.values", std::span(eta.values)});
  sections.push_back({"f.lambda", std::span(message.lambda.values)});
  Record record = read_record(record_bytes(sections));
  try {
    extract_sparse_message(record, "f");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(SparseMessage, HasOneEncodingAndNoOther) {
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(refusal(40, {0, 5, 8, 10}, 15), "");
  EXPECT_EQ(refusal(40, {8, 32}, 32), "");
  EXPECT_EQ(refusal(40, {}, 0), "");
  EXPECT_EQ(refusal(kMost, {0, 5}, 5), "");  // who expands it must know better
  EXPECT_THAT(refusal(40, {0}, 0), HasSubstr("pairs"));
  EXPECT_THAT(refusal(-1, {}, 0), HasSubstr("not negative"));
  EXPECT_THAT(refusal(40, {3, 5}, 5), HasSubstr("zeros from 8"));
  EXPECT_THAT(refusal(40, {-8, 5}, 5), HasSubstr("zeros from 8"));
  EXPECT_THAT(refusal(40, {0, 5, 0, 5}, 10), HasSubstr("zeros from 8"));
  EXPECT_THAT(refusal(40, {kMost, 5}, 5), HasSubstr("zeros from 8"));
  EXPECT_THAT(refusal(40, {8, 0}, 0), HasSubstr("as many numbers"));
  EXPECT_THAT(refusal(40, {8, kMost}, 5), HasSubstr("as many numbers"));
  EXPECT_THAT(refusal(40, {8, -1}, 5), HasSubstr("as many numbers"));
  EXPECT_THAT(refusal(40, {8, 5}, 4), HasSubstr("as many numbers"));
  EXPECT_THAT(refusal(40, {8, 5}, 6), HasSubstr("runs for all"));
  EXPECT_THAT(refusal(40, {8, 30}, 30), HasSubstr("at its end"));
  EXPECT_THAT(refusal(40, {0, 40}, 40), HasSubstr("nothing is left out"));
  EXPECT_THAT(refusal(40, {0, 41}, 41), HasSubstr("as many numbers"));
}

}  // namespace
}  // namespace fedep
