// Factors that live on several ranks: where they are, what a save promises, and who has them after it.

#include "fedep/sim/ranks/rank_sites.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <latch>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "fedep/message/error.h"
#include "fedep/sim/ranks/test_thread_ranks.h"

namespace fedep {
namespace {

SiteState state_of(float x) {
  SiteState state;
  state.factor = Message(HostVector<float>{x, -x}, HostVector<float>{2 * x, 1});
  state.optimizer.steps = 3;
  state.optimizer.slots.push_back(Message(HostVector<float>{x, x}, 1.0f));
  return state;
}

// A folder that all ranks see, in memory.
struct Shelf {
  std::mutex mutex;  // guards states
  std::map<std::pair<std::uint64_t, std::int64_t>, StoredSite> states;
  std::function<void()> before_write = [] {};
};

class ShelfArchive final : public SiteArchive {
 public:
  explicit ShelfArchive(Shelf& shelf) : shelf_(shelf) {}

  void write(std::uint64_t client, std::int64_t round, const StoredSite& state) override {
    shelf_.before_write();
    const std::lock_guard lock(shelf_.mutex);
    shelf_.states[{client, round}] = state;
  }
  StoredSite read(std::uint64_t client, std::int64_t round) const override {
    const std::lock_guard lock(shelf_.mutex);
    return shelf_.states.at({client, round});
  }
  bool has(std::uint64_t client, std::int64_t round) const override {
    const std::lock_guard lock(shelf_.mutex);
    return shelf_.states.contains({client, round});
  }
  void keep_only(std::span<const SiteManifest> manifests) override {
    const std::lock_guard lock(shelf_.mutex);
    std::erase_if(shelf_.states, [&](const auto& state) {
      return std::ranges::none_of(manifests, [&](const SiteManifest& manifest) {
        const auto named = manifest.find(state.first.first);
        return named != manifest.end() && named->second == state.first.second;
      });
    });
  }

 private:
  Shelf& shelf_;
};

std::unique_ptr<SiteStore> store_on(Shelf& shelf) {
  return make_memory_store(std::make_unique<ShelfArchive>(shelf));
}

void settle(RankSites& sites, Ranks& ranks, std::int64_t round,
            const std::vector<PlacedClient>& clients) {
  for (const PlacedClient& placed : clients) {
    if (placed.rank != ranks.rank()) continue;
    sites.own().propose(placed.client, round, state_of(float(placed.client)));
    sites.own().settle(round, std::vector{placed.client});
  }
  sites.settled(round, clients);
}

TEST(RankSites, TravelToWhereTheirClientsArePlayed) {
  play_ranks(3, [&](Ranks& ranks) {
    const auto own = make_memory_store();
    RankSites sites(ranks, *own);
    const std::vector<PlacedClient> first{{10, 0}, {11, 1}, {12, 1}};
    settle(sites, ranks, 4, first);
    EXPECT_EQ(sites.home(11), 1u);
    EXPECT_EQ(sites.home(99), std::nullopt);

    // 10 goes to 2, 11 stays, 12 goes to 0, 99 has nothing to bring.
    sites.bring(std::vector<PlacedClient>{{10, 2}, {11, 1}, {12, 0}, {99, 2}});
    const std::map<std::uint64_t, std::size_t> homes{{10, 2}, {11, 1}, {12, 0}};
    for (const auto& [client, rank] : homes) {
      EXPECT_EQ(sites.home(client), rank);
      EXPECT_EQ(sites.is_elsewhere(client), rank != ranks.rank());
      if (rank == ranks.rank()) {
        EXPECT_EQ(own->get(client), state_of(float(client)));
      } else {
        EXPECT_EQ(own->get(client), std::nullopt);
        // A factor that is elsewhere is never taken for one that was never made.
        EXPECT_THROW(sites.get(client), RunError);
      }
    }
    EXPECT_EQ(sites.visited(), 3u);
    EXPECT_EQ(sites.is_elsewhere(99), !ranks.is_first());
    sites.clear();
    EXPECT_EQ(sites.visited(), 0u);
    EXPECT_EQ(own->visited(), 0u);
  });
}

// A checkpoint is written next, which names them.
TEST(RankSites, AreSafeOnAllRanksWhenASaveReturnsOnOne) {
  Shelf shelf;
  std::latch first_is_done(1);  // or waits for the others
  std::atomic<bool> is_written = false;
  play_ranks(2, [&](Ranks& ranks) {
    const auto own = store_on(shelf);
    RankSites sites(ranks, *own);
    settle(sites, ranks, 4, {{11, 1}});
    if (ranks.is_first()) {
      bool waits = false;
      dynamic_cast<ThreadRanks&>(ranks).before_waiting = [&] {
        waits = true;
        first_is_done.count_down();
      };
      EXPECT_EQ(sites.save(), (SiteManifest{{11, 4}}));
      EXPECT_TRUE(is_written);
      if (!waits) first_is_done.count_down();
    } else {
      shelf.before_write = [&] {
        first_is_done.wait();
        is_written = true;
      };
      sites.save();
    }
  });
}

TEST(RankSites, AreDealtOutAnewWhereARunGoesOn) {
  Shelf shelf;
  const std::vector<PlacedClient> clients{{10, 0}, {11, 1}, {12, 1}, {13, 2}, {14, 1}};
  SiteManifest saved;
  play_ranks(3, [&](Ranks& ranks) {
    const auto own = store_on(shelf);
    RankSites sites(ranks, *own);
    settle(sites, ranks, 4, clients);
    const SiteManifest manifest = sites.save();
    if (ranks.is_first()) saved = manifest;
  });
  ASSERT_EQ(saved.size(), clients.size());
  for (const std::size_t size : {1u, 2u, 4u}) {
    SCOPED_TRACE(size);
    std::atomic<std::size_t> here = 0;
    play_ranks(size, [&](Ranks& ranks) {
      const auto own = store_on(shelf);
      RankSites sites(ranks, *own);
      sites.restore(saved);
      EXPECT_EQ(sites.visited(), clients.size());
      EXPECT_LE(own->visited(), (clients.size() + size - 1) / size);
      for (const PlacedClient& placed : clients) {
        if (sites.is_elsewhere(placed.client)) continue;
        EXPECT_EQ(sites.get(placed.client), state_of(float(placed.client)));
        ++here;
      }
      EXPECT_EQ(sites.save(), saved);
    });
    EXPECT_EQ(here, clients.size());
  }
}

// Rank 0 removes files, of all ranks' clients.
TEST(RankSites, KeepWhatAnotherRankStillNeeds) {
  Shelf shelf;
  play_ranks(3, [&](Ranks& ranks) {
    const auto own = store_on(shelf);
    RankSites sites(ranks, *own);
    settle(sites, ranks, 4, {{10, 0}, {11, 1}, {12, 2}});
    sites.save();
    settle(sites, ranks, 5, {{11, 1}});
    const SiteManifest latest = sites.save();
    if (ranks.is_first()) sites.keep_only(std::vector{latest});
    ranks.wait_for_all();
    EXPECT_TRUE(shelf.states.contains({11, 5}));
    EXPECT_FALSE(shelf.states.contains({11, 4}));
    ranks.wait_for_all();
    if (ranks.is_first()) sites.keep_only({});
    ranks.wait_for_all();
    EXPECT_EQ(shelf.states.size(), 3u);
  });
}

}  // namespace
}  // namespace fedep
