#include "fedep/data/partition_kinds.h"

#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fedep/data/test_files.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

using testing::HasSubstr;

// Twelve examples, two coarse labels with two fine ones each, and an index file that gives every
// second record to one of two clients.
class PartitionKinds : public testing::Test {
 protected:
  PartitionKinds() {
    for (int i = 0; i < 12; ++i) {
      labels_.push_back(i % 4);
      coarse_.push_back(i % 4 / 2);
    }
    std::vector<std::uint8_t> index(6 * sizeof(std::int32_t));
    for (std::size_t i = 0; i < 6; ++i) index[i * sizeof(std::int32_t)] = std::uint8_t(2 * i);
    folder_.write("index.i32", index);
  }

  PartitionInput input() const {
    return {.dataset = "test",
            .labels = labels_,
            .coarse = coarse_,
            .index_file = folder_.path() / "index.i32"};
  }
  DataSettings settings(std::string_view partition) const {
    return {.name = "test", .partition = std::string(partition), .clients = 2, .examples = 3};
  }

  std::vector<std::int32_t> labels_, coarse_;
  TemporaryFolder folder_;
};

TEST_F(PartitionKinds, AreFoundByNameAndAnUnknownOneGetsASuggestion) {
  for (const PartitionKind& kind : partition_kinds()) {
    EXPECT_EQ(&find_partition(kind.name), &kind);
    EXPECT_FALSE(kind.summary.empty()) << kind.name;
  }
  EXPECT_THAT(message_of<InputError>([] { find_partition("pachinco"); }),
              HasSubstr("unknown data.partition pachinco; did you mean pachinko?"));
}

TEST_F(PartitionKinds, GiveEveryExampleToAtMostOneClient) {
  for (const PartitionKind& kind : partition_kinds()) {
    if (kind.natural()) continue;
    const Partition parts = make_partition(settings(kind.name), input(), {.clients = 2});
    EXPECT_EQ(parts.size(), 2u) << kind.name;
    std::set<std::uint32_t> given;
    for (const auto& examples : parts) {
      EXPECT_FALSE(examples.empty()) << kind.name;
      for (const std::uint32_t example : examples) {
        EXPECT_LT(example, labels_.size()) << kind.name;
        EXPECT_TRUE(given.insert(example).second) << kind.name << example;
      }
    }
  }
}

TEST_F(PartitionKinds, OfRecordsLeaveOutThoseThatAreNoExamples) {
  std::vector<std::uint32_t> places(12);
  for (std::uint32_t i = 0; i < 12; ++i) places[i] = i == 2 ? kLeftOut : i > 2 ? i - 1 : i;
  PartitionInput records = input();
  records.places = places;
  EXPECT_EQ(make_partition(settings("given"), records, {}), (Partition{{0, 3}, {5, 7, 9}}));
}

TEST_F(PartitionKinds, ThatCannotBeMadeNameThoseThatCan) {
  const auto refusal = [&](std::string_view partition, const PartitionInput& in) {
    return message_of<InputError>([&] { make_partition(settings(partition), in, {.clients = 2}); });
  };
  EXPECT_EQ(
      refusal("natural", input()),
      "data.partition of test must be given, dirichlet, pachinko or iid, but is natural: these "
      "data name no clients");
  PartitionInput fine = input();
  fine.coarse = {};
  EXPECT_EQ(refusal("pachinko", fine),
            "data.partition of test must be given, dirichlet or iid, but is pachinko");
  fine.names_clients = true;
  EXPECT_EQ(refusal("pachinko", fine),
            "data.partition of test must be given, natural, dirichlet or iid, but is pachinko");
}

TEST(CheckNaturalPartition, RefusesOtherNamesAndCorrectsUnknownOnes) {
  EXPECT_NO_THROW(check_natural_partition({.name = "synthetic"}));
  const auto refusal = [](const std::string& partition) {
    return message_of<InputError>(
        [&] { check_natural_partition({.name = "synthetic", .partition = partition}); });
  };
  EXPECT_EQ(refusal("iid"), "data.partition of synthetic must be natural, but is iid");
  EXPECT_THAT(refusal("dirichlett"), HasSubstr("did you mean dirichlet?"));
}

}  // namespace
}  // namespace fedep
