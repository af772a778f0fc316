#include "fedep/store/site_files.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fedep/message/error.h"
#include "fedep/message/test_folder.h"
#include "fedep/random/stream.h"
#include "fedep/store/scratch_store.h"

namespace fedep {
namespace {

using V = HostVector<float>;
namespace fs = std::filesystem;

class SiteStores : public testing::Test {
 protected:
  std::size_t files(const std::string& name) const {
    if (!fs::exists(folder_ / name)) return 0;
    return std::size_t(
        std::distance(fs::directory_iterator(folder_ / name), fs::directory_iterator()));
  }

  TemporaryFolder temporary_;
  fs::path folder_ = temporary_.path() / "sites";  // made by the stores
};

SiteState random_state(Stream& stream, std::int64_t round) {
  const std::size_t d = 1 + stream.below(stream.below(2) == 0 ? 6 : 60);
  const std::size_t silent = stream.below(d + 1);  // zeros at its beginning
  const auto vector = [&] {
    V v(d);
    for (std::size_t i = silent; i < d; ++i) v[i] = float(stream.normal());
    return v;
  };
  const auto family = Family(stream.below(3));
  const auto message = [&] {
    Message out = flat_like(vector(), family);
    out.eta() = vector();
    for (float& x : out.lambda_span()) x = float(stream.normal());
    return out;
  };
  SiteState state{.factor = message(),
                  .optimizer = {.steps = std::int64_t(stream.below(100)), .slots = {}}};
  for (std::uint64_t slots = stream.below(3); slots > 0; --slots)
    state.optimizer.slots.push_back(message());
  for (std::int64_t of = kUnvisited; of <= round; ++of) {
    if (stream.below(3) == 0) state.shares.push_back({of, stream.normal()});
  }
  return state;
}

SiteState state_of(float value) {
  return {.factor = Message(V{value, -value}, 2 * value), .optimizer = {}};
}

const std::vector<std::uint64_t> kOnlyClient7{7};

TEST_F(SiteStores, AllAgreeInEveryBitWhateverIsDoneToThem) {
  for (std::uint32_t trial = 0; trial < 4; ++trial) {
    Stream stream({.seed = 1, .step = trial});
    const std::string name = std::to_string(trial);
    std::vector<std::unique_ptr<SiteStore>> stores;
    stores.push_back(make_memory_store(std::make_unique<SiteFiles>(folder_ / ("memory" + name))));
    stores.push_back(make_disk_store(folder_ / ("disk" + name)));
    stores.push_back(make_scratch_store(temporary_.path(),
                                        std::make_unique<SiteFiles>(folder_ / ("saved" + name))));
    constexpr std::uint64_t kClients = 6;
    std::vector<SiteManifest> saved;
    std::int64_t round = 0;
    for (int operation = 0; operation < 40; ++operation) {
      switch (stream.below(8)) {
        default: {  // a round: some propose, some of those and perhaps others are taken
          for (std::uint64_t client = 0; client < kClients; ++client) {
            if (stream.below(2) == 0) continue;
            const SiteState state = random_state(stream, round);
            for (const auto& store : stores) {
              store->propose(client, round, state);
              EXPECT_EQ(store->proposed(client), state);
            }
          }
          std::vector<std::uint64_t> taken;
          for (std::uint64_t client = 0; client < kClients; ++client) {
            if (stream.below(2) == 0) taken.push_back(client);
          }
          for (const auto& store : stores) store->settle(round, taken);
          ++round;
          break;
        }
        case 0: {
          saved.push_back(stores[0]->save());
          for (const auto& store : stores) EXPECT_EQ(store->save(), saved.back());
          break;
        }
        case 1: {
          if (saved.empty()) break;
          const SiteManifest manifest = saved[stream.below(saved.size())];
          for (const auto& store : stores) store->restore(manifest);
          break;
        }
        case 2: {
          while (saved.size() > 2) saved.erase(saved.begin());
          for (const auto& store : stores) store->keep_only(saved);
          break;
        }
        case 3: {
          if (stream.below(3) > 0) break;
          for (const auto& store : stores) store->clear();
          break;
        }
        case 4: {  // one of them travels, and comes back
          const std::uint64_t client = stream.below(kClients);
          for (const auto& store : stores) {
            if (!store->get(client)) continue;
            SiteVersion version = store->release(client);
            EXPECT_EQ(store->get(client), std::nullopt);
            store->adopt(client, std::move(version));
          }
          break;
        }
      }
      for (const auto& store : stores) {
        EXPECT_EQ(store->visited(), stores[0]->visited());
        for (std::uint64_t client = 0; client < kClients; ++client) {
          EXPECT_EQ(store->get(client), stores[0]->get(client));
          EXPECT_EQ(store->proposed(client), std::nullopt);
        }
      }
    }
  }
}

TEST_F(SiteStores, ScratchLeavesNothingBehindAndSavesOnlyWhatIsAskedFor) {
  const fs::path scratch = temporary_.path() / "scratch";
  fs::create_directory(scratch);
  {
    const auto store = make_scratch_store(scratch, std::make_unique<SiteFiles>(folder_ / "saved"));
    for (std::int64_t round = 0; round < 5; ++round) {
      store->propose(7, round, state_of(float(round)));
      store->settle(round, kOnlyClient7);
    }
    EXPECT_EQ(files("saved"), 0u);
    const fs::path own = fs::directory_iterator(scratch)->path();
    EXPECT_EQ(std::distance(fs::directory_iterator(own), fs::directory_iterator()), 1);
    EXPECT_EQ(store->save(), (SiteManifest{{7, 4}}));
    EXPECT_EQ(files("saved"), 1u);
    // What is only there is read there, and stays though no checkpoint names it.
    store->restore({{7, 4}});
    store->keep_only({});
    EXPECT_EQ(store->get(7), state_of(4));
  }
  EXPECT_TRUE(fs::is_empty(scratch));
}

TEST_F(SiteStores, ScratchMustBeAFolderToWriteTo) {
  EXPECT_THROW(make_scratch_store(folder_ / "nowhere", std::make_unique<SiteFiles>(folder_)),
               InputError);
}

TEST_F(SiteStores, KeepWhatAFactorSaysAndNoZeros) {
  const auto state_with = [](std::size_t numbers) {
    V eta(100000), lambda(100000);
    for (std::size_t i = 0; i < numbers; ++i) eta[70000 + i] = lambda[70000 + i] = float(i + 1);
    return SiteState{.factor = Message(eta, lambda), .optimizer = {}};
  };
  const auto disk = make_disk_store(folder_ / "disk");
  const auto memory = make_memory_store(std::make_unique<SiteFiles>(folder_ / "memory"));
  for (const std::size_t numbers : {std::size_t(0), std::size_t(500)}) {
    const SiteState state = state_with(numbers);
    for (SiteStore* const store : {disk.get(), memory.get()}) {
      store->propose(7, 0, state);
      store->settle(0, kOnlyClient7);
      EXPECT_EQ(store->get(7), state);
      std::size_t looked = 0;
      store->look(7, [&](const StoredSite& stored) {
        ++looked;
        EXPECT_EQ(stored, without_zeros(state));
        EXPECT_LE(stored.bytes(), 8 * numbers + 64);
      });
      store->look(8, [&](const StoredSite&) { ++looked; });
      EXPECT_EQ(looked, 1u);
      store->save();
    }
    for (const auto* const name : {"disk", "memory"}) {
      const auto size = fs::file_size(site_file(folder_ / name, 7, 0));
      EXPECT_LE(size, 8 * numbers + 1000);
    }
  }
}

TEST_F(SiteStores, ProposalsMayComeWithoutZeros) {
  const SiteState state{.factor = Message(V(50), V(50, 1.0f)),
                        .optimizer = {.steps = 3, .slots = {}}};
  for (const auto& store : {make_memory_store(), make_disk_store(folder_)}) {
    store->propose_stored(7, 0, without_zeros(state));
    EXPECT_EQ(store->proposed(7), state);
    store->settle(0, kOnlyClient7);
    EXPECT_EQ(store->get(7), state);
  }
}

TEST_F(SiteStores, RefuseAFactorOfAnotherModel) {
  SiteFiles files(folder_, 2);
  files.write(7, 0, without_zeros(state_of(1)));
  EXPECT_EQ(expanded(files.read(7, 0)), state_of(1));
  EXPECT_THROW(SiteFiles(folder_, 3).read(7, 0), InputError);
}

TEST_F(SiteStores, AProposalCountsOnceItIsSettledAndElseIsDropped) {
  for (const auto& store : {make_memory_store(), make_disk_store(folder_)}) {
    store->propose(7, 0, state_of(1));
    store->propose(8, 0, state_of(2));
    EXPECT_EQ(store->get(7), std::nullopt);
    EXPECT_EQ(store->visited(), 0u);
    store->settle(0, kOnlyClient7);
    EXPECT_EQ(store->get(7), state_of(1));
    EXPECT_EQ(store->get(8), std::nullopt);
    EXPECT_EQ(store->proposed(8), std::nullopt);
    EXPECT_EQ(store->visited(), 1u);
    store->propose(7, 1, state_of(3));
    store->settle(1, {});
    EXPECT_EQ(store->get(7), state_of(1));
    // A proposal of a round that died is not this round's.
    store->propose(7, 2, state_of(4));
    store->settle(3, kOnlyClient7);
    EXPECT_EQ(store->get(7), state_of(1));
    store->clear();
    EXPECT_EQ(store->get(7), std::nullopt);
  }
}

TEST_F(SiteStores, TheLastProposalOfARoundIsTheOneThatCounts) {
  for (const auto& store : {make_memory_store(), make_disk_store(folder_)}) {
    store->propose(7, 0, state_of(1));
    store->propose(7, 0, state_of(2));
    store->settle(0, kOnlyClient7);
    EXPECT_EQ(store->get(7), state_of(2));
  }
}

TEST_F(SiteStores, AClientNeverVisitedCostsNothing) {
  const auto disk = make_disk_store(folder_ / "disk");
  const auto memory = make_memory_store(std::make_unique<SiteFiles>(folder_ / "memory"));
  for (const auto* store : {disk.get(), memory.get()}) {
    EXPECT_EQ(store->visited(), 0u);
    for (std::uint64_t client = 0; client < 100; ++client)
      EXPECT_EQ(store->get(client), std::nullopt);
  }
  EXPECT_TRUE(disk->save().empty());
  EXPECT_TRUE(memory->save().empty());
  EXPECT_EQ(files("disk") + files("memory"), 0u);
}

TEST_F(SiteStores, KeepsNoFileThatNothingCanAskForAgain) {
  const auto store = make_disk_store(folder_ / "disk");
  for (std::int64_t round = 0; round < 10; ++round) {
    store->propose(7, round, state_of(float(round)));
    store->propose(8, round, state_of(float(round)));
    store->settle(round, kOnlyClient7);
    EXPECT_EQ(files("disk"), 1u);
  }
  const SiteManifest saved = store->save();
  store->propose(7, 10, state_of(10));
  store->settle(10, kOnlyClient7);
  EXPECT_EQ(files("disk"), 2u);  // the one that counts and the one a checkpoint names
  store->keep_only({});
  EXPECT_EQ(files("disk"), 1u);
  EXPECT_EQ(store->get(7), state_of(10));
  EXPECT_THROW(store->restore(saved), InputError);
}

// However often it was saved, and whatever was settled since.
TEST_F(SiteStores, KeepsFilesOfSavedStatesUntilItIsToldWhichToKeep) {
  auto store = make_disk_store(folder_ / "disk");
  const auto visit = [&](std::int64_t round) {
    store->propose(7, round, state_of(float(round)));
    store->settle(round, kOnlyClient7);
  };
  for (std::int64_t round = 0; round < 5; ++round) {
    visit(round);
    for (int i = 0; i < 20; ++i) EXPECT_EQ(store->save(), (SiteManifest{{7, round}}));
  }
  visit(5);
  visit(6);  // nobody saved 5
  EXPECT_EQ(files("disk"), 6u);
  for (const std::int64_t round : {0, 1, 2, 3, 4}) {
    store->restore({{7, round}});
    EXPECT_EQ(store->get(7), state_of(float(round)));
  }
  store = make_disk_store(folder_ / "disk");  // another process goes on from round 4
  store->restore({{7, 4}});
  visit(7);
  EXPECT_TRUE(fs::exists(site_file(folder_ / "disk", 7, 4)));
  store->save();
  store->keep_only(std::vector<SiteManifest>{{{7, 1}}, {{7, 3}}});
  EXPECT_EQ(files("disk"), 3u);
  visit(8);  // 7 was saved, but is not to be kept
  EXPECT_EQ(files("disk"), 3u);
  store->restore({{7, 1}});
  visit(9);
  EXPECT_TRUE(fs::exists(site_file(folder_ / "disk", 7, 1)));
  store->keep_only({});
  EXPECT_EQ(files("disk"), 1u);
  EXPECT_EQ(store->get(7), state_of(9));
}

TEST_F(SiteStores, AnotherProcessFindsWhatWasSaved) {
  for (const bool on_disk : {true, false}) {
    const fs::path folder = folder_ / (on_disk ? "disk" : "memory");
    const auto make = [&] {
      return on_disk ? make_disk_store(folder)
                     : make_memory_store(std::make_unique<SiteFiles>(folder));
    };
    SiteManifest saved;
    {
      const auto store = make();
      store->propose(7, 3, state_of(1));
      store->settle(3, kOnlyClient7);
      saved = store->save();
      store->propose(7, 4, state_of(2));  // dies before it settles
    }
    EXPECT_EQ(saved, (SiteManifest{{7, 3}}));
    const auto store = make();
    EXPECT_EQ(store->get(7), std::nullopt);
    store->restore(saved);
    store->keep_only(std::vector<SiteManifest>{saved});
    EXPECT_EQ(store->get(7), state_of(1));
    EXPECT_EQ(store->proposed(7), std::nullopt);
    EXPECT_EQ(files(folder.filename().string()), 1u);
  }
}

TEST_F(SiteStores, SavesItsOwnStateOverAFileThatAnotherRunLeft) {
  for (const float value : {1.0f, 2.0f}) {
    const auto store = make_memory_store(std::make_unique<SiteFiles>(folder_ / "memory"));
    store->propose(7, 0, state_of(value));
    store->settle(0, kOnlyClient7);
    const auto reader = make_memory_store(std::make_unique<SiteFiles>(folder_ / "memory"));
    reader->restore(store->save());
    EXPECT_EQ(reader->get(7), state_of(value));
  }
}

TEST_F(SiteStores, ADamagedOrMissingFileIsRefusedByItsName) {
  for (const bool missing : {false, true}) {
    for (const bool on_disk : {true, false}) {
      const fs::path folder = folder_ / ("s" + std::to_string(2 * missing + on_disk));
      const auto store = on_disk ? make_disk_store(folder)
                                 : make_memory_store(std::make_unique<SiteFiles>(folder));
      store->propose(7, 3, state_of(1));
      store->settle(3, kOnlyClient7);
      const SiteManifest saved = store->save();
      const fs::path file = folder / "0000000000000007-3.site";
      ASSERT_TRUE(fs::exists(file));
      if (missing) {
        fs::remove(file);
      } else {
        std::fstream bytes(file, std::ios::in | std::ios::out | std::ios::binary);
        bytes.seekp(std::streamoff(fs::file_size(file) / 2));
        bytes.put('\x55');
      }
      try {
        store->restore(saved);
        FAIL() << "restored from a damaged file";
      } catch (const InputError& error) {
        EXPECT_NE(std::string(error.what()).find(file.string()), std::string::npos) << error.what();
      }
    }
  }
}

TEST_F(SiteStores, AFileOfAnotherRoundOrClientIsRefused) {
  const auto store = make_disk_store(folder_);
  store->propose(7, 3, state_of(1));
  store->settle(3, kOnlyClient7);
  fs::copy_file(folder_ / "0000000000000007-3.site", folder_ / "0000000000000007-4.site");
  EXPECT_THROW(store->restore({{7, 4}}), InputError);
  fs::copy_file(folder_ / "0000000000000007-3.site", folder_ / "0000000000000008-3.site");
  EXPECT_THROW(store->restore({{8, 3}}), InputError);
}

TEST_F(SiteStores, SharesThatNoVisitLeavesAreRefused) {
  SiteFiles files(folder_);
  const auto write = [&](std::vector<MeanShare> shares) {
    StoredSite stored = without_zeros(state_of(1));
    stored.shares = std::move(shares);
    files.write(7, 3, stored);
    return stored;
  };
  const auto refusal = [&](std::vector<MeanShare> shares) {
    write(std::move(shares));
    return message_of<InputError>([&] { files.read(7, 3); });
  };
  const StoredSite fine = write({{kUnvisited, 12}, {0, -0.5}, {3, 0.25}});
  EXPECT_EQ(files.read(7, 3), fine);
  using testing::HasSubstr;
  EXPECT_THAT(refusal({{2, 0.5}, {4, 0.25}}), HasSubstr("from 3 to 3, but has one of 4"));
  EXPECT_THAT(refusal({{2, 0.5}, {2, 0.25}}), HasSubstr("from 3 to 3, but has one of 2"));
  EXPECT_THAT(refusal({{-2, 0.5}}), HasSubstr("from -1 to 3, but has one of -2"));
  EXPECT_THAT(refusal({{1, 0}}), HasSubstr("not 0"));
}

TEST_F(SiteStores, MemoryWithoutAFolderCannotBeSaved) {
  const auto store = make_memory_store();
  store->propose(7, 0, state_of(1));
  store->settle(0, kOnlyClient7);
  EXPECT_THROW(store->save(), InputError);
}

}  // namespace
}  // namespace fedep
