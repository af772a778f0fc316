#include "fedep/round/mean_shelf.h"

#include <utility>

#include <gtest/gtest.h>

#include "fedep/message/error.h"
#include "fedep/round/site_store.h"

namespace fedep {
namespace {

using V = HostVector<float>;

V mean_of(std::int64_t round) { return {float(round), 0.5f, -float(round)}; }

// Files that are not on a disk.
class Archive final : public SiteArchive {
 public:
  void write(std::uint64_t client, std::int64_t round, const StoredSite& state) override {
    files_[{client, round}] = state;
  }
  StoredSite read(std::uint64_t client, std::int64_t round) const override {
    const auto found = files_.find({client, round});
    if (found == files_.end()) throw InputError("not there");
    return found->second;
  }
  bool has(std::uint64_t client, std::int64_t round) const override {
    return files_.contains({client, round});
  }
  void remove(std::uint64_t client, std::int64_t round) { files_.erase({client, round}); }
  void keep_only(std::span<const SiteManifest>) override {}

 private:
  std::map<std::pair<std::uint64_t, std::int64_t>, StoredSite> files_;
};

class MeanShelves : public testing::Test {
 protected:
  Archive files_;
};

TEST_F(MeanShelves, HoldSoManyBytesInMemoryAndReadTheOthersAgain) {
  constexpr std::size_t kFive = 5 * 3 * sizeof(float);
  MeanShelf shelf(&files_, kFive);
  for (std::int64_t round = 0; round < 12; ++round) shelf.keep(round, mean_of(round), true);
  EXPECT_EQ(shelf.in_memory(), 5u);
  for (std::int64_t round = 0; round < 12; ++round) {
    EXPECT_EQ(*shelf.at(round), mean_of(round)) << round;
    EXPECT_EQ(shelf.in_memory(), 5u);
  }
  EXPECT_EQ(shelf.manifest().size(), 12u);
}

TEST_F(MeanShelves, WithoutAnArchiveForgetNothing) {
  MeanShelf shelf(nullptr, 1);
  for (std::int64_t round = 0; round < 12; ++round) shelf.keep(round, mean_of(round), true);
  EXPECT_EQ(*shelf.at(0), mean_of(0));
  EXPECT_EQ(shelf.in_memory(), 12u);
}

// What is asked for stays; what was asked for longest ago goes.
TEST_F(MeanShelves, LetGoOfWhatWasAskedForLongestAgo) {
  MeanShelf shelf(&files_, 4 * 3 * sizeof(float));
  for (std::int64_t round = 0; round < 4; ++round) shelf.keep(round, mean_of(round), true);
  const MeanShelf::Mean first = shelf.at(0);
  shelf.keep(4, mean_of(4), true);
  files_.remove(mean_key(0), 0);
  files_.remove(mean_key(1), 1);
  EXPECT_EQ(*shelf.at(0), mean_of(0));
  EXPECT_THROW(shelf.at(1), InputError);
}

// The newest may not be written yet, where another process does that.
TEST_F(MeanShelves, HoldTheNewestWhateverElseIsAskedFor) {
  MeanShelf shelf(&files_, 1);
  for (std::int64_t round = 0; round < 5; ++round) shelf.keep(round, mean_of(round), true);
  shelf.keep(5, mean_of(5), false);
  for (std::int64_t round = 0; round < 5; ++round) EXPECT_EQ(*shelf.at(round), mean_of(round));
  EXPECT_EQ(*shelf.at(5), mean_of(5));
}

// Ranks have the same means; one of them writes.
TEST_F(MeanShelves, OfOtherProcessesReadWhatOneWrote) {
  MeanShelf writes(&files_, 1), reads(&files_, 1);
  for (std::int64_t round = 0; round < 9; ++round) {
    writes.keep(round, mean_of(round), true);
    reads.keep(round, mean_of(round), false);
  }
  for (std::int64_t round = 0; round < 9; ++round) EXPECT_EQ(*reads.at(round), mean_of(round));
  MeanShelf alone(nullptr);
  EXPECT_THROW(alone.at(3), InputError);
}

TEST_F(MeanShelves, AreRestoredFromAManifestThatNamesClientsToo) {
  SiteManifest saved{
      {7, 3}, {mean_key(2), 2}, {mean_key(3), 4}};  // the last is a client's by chance
  MeanShelf shelf(&files_);
  shelf.keep(2, mean_of(2), true);
  shelf.keep(5, mean_of(5), true);
  MeanShelf other(&files_);
  other.restore(saved);
  EXPECT_EQ(other.manifest(), (SiteManifest{{mean_key(2), 2}}));
  EXPECT_EQ(*other.at(2), mean_of(2));
  EXPECT_THROW(other.at(5), InputError);
  EXPECT_EQ(without_means(saved), (SiteManifest{{7, 3}, {mean_key(3), 4}}));
}

}  // namespace
}  // namespace fedep
