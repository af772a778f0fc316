#include "fedep/data/kept_clients.h"

#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "fedep/data/fingerprint.h"
#include "fedep/data/registry.h"
#include "fedep/data/test_batches.h"
#include "fedep/data/test_files.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

DataSettings images(int keep, std::uint64_t draw) {
  return {.name = "random_images",
          .clients = 12,
          .examples = 5,
          .partition_seed = draw,
          .keep_clients = keep};
}

// Images themselves do not depend on the draw here.
std::unique_ptr<Dataset> kept(std::size_t count, std::uint64_t seed) {
  return kept_clients(open_dataset(images(0, 1), 1, ""), count, seed);
}

std::set<std::string> ids(const Dataset& data) {
  std::set<std::string> out;
  for (const auto& [id, examples] : data.clients()) out.insert(id);
  return out;
}

TEST(KeptClients, HaveTheirOwnExamplesAndTheWholeTestSet) {
  const auto all = open_dataset(images(0, 1), 1, "");
  const auto some = kept(5, 3);
  ASSERT_EQ(some->clients().size(), 5u);
  std::size_t before = 0;  // in the data set's order
  for (std::size_t c = 0; c < 5; ++c) {
    const auto old = std::ranges::find(all->clients(), some->clients()[c]);
    ASSERT_NE(old, all->clients().end());
    const std::size_t place = std::size_t(old - all->clients().begin());
    EXPECT_TRUE(c == 0 || place > before);
    before = place;
    EXPECT_EQ(training_batch(*some, c).dense, training_batch(*all, place).dense);
    EXPECT_EQ(some->raw_images()->clients[c], all->raw_images()->clients[place]);
  }
  EXPECT_EQ(test_batch(*some).dense, test_batch(*all).dense);
  EXPECT_EQ(some->test_clients(), all->test_clients());
}

TEST(KeptClients, AreOthersWithAnotherSeedAndFewerAreSomeOfMore) {
  EXPECT_EQ(ids(*kept(5, 3)), ids(*kept(5, 3)));
  EXPECT_NE(ids(*kept(5, 3)), ids(*kept(5, 4)));
  EXPECT_TRUE(std::ranges::includes(ids(*kept(9, 3)), ids(*kept(5, 3))));
}

TEST(KeptClients, AreEachAsLikelyAsTheOthers) {
  std::map<std::string, int> times;
  for (std::uint64_t seed = 0; seed < 1200; ++seed) {
    for (const std::string& id : ids(*kept(3, seed))) ++times[id];
  }
  ASSERT_EQ(times.size(), 12u);
  for (const auto& [id, count] : times) EXPECT_NEAR(count, 300, 75) << id;  // five deviations of 15
}

TEST(KeptClients, AreAllWhereThatManyAreAsked) {
  const auto all = open_dataset(images(0, 1), 1, "");
  EXPECT_EQ(fingerprint(*kept(12, 3)), fingerprint(*all));
  EXPECT_EQ(message_of<InputError>([] { kept(13, 3); }),
            "data.keep_clients must be at most the 12 clients that there are, but is 13");
}

TEST(KeptClients, AreDrawnByThePartitionsSeed) {
  const auto some = open_dataset(images(5, 3), 1, "");
  EXPECT_EQ(some->clients().size(), 5u);
  const auto again = open_dataset(images(5, 3), 2, "");
  EXPECT_EQ(fingerprint(*some), fingerprint(*again));
  EXPECT_EQ(ids(*some), ids(*kept(5, 3)));
}

}  // namespace
}  // namespace fedep
