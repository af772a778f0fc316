// Ranks with a GPU against one process with it: whatever their number, the same states, factors and
// scores, bit by bit. The ranks are threads that take turns on one GPU.
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "fedep/message/error.h"
#include "fedep/message/test_folder.h"
#include "fedep/sim/gpu/cuda_place.h"
#include "fedep/sim/gpu/cuda_rank_sum.h"
#include "fedep/sim/gpu/test_cuda_agreement.h"
#include "fedep/sim/gpu/test_turns.h"
#include "fedep/sim/ranks/test_thread_ranks.h"
#include "fedep/sim/ranks/test_uneven_run.h"
#include "fedep/store/site_files.h"

namespace fedep {
namespace {

// Ranks that are threads, one at a time on the GPU.
void play_in_turns(std::size_t size, const std::function<void(Ranks&)>& play) {
  std::mutex turn;
  play_ranks(size, [&](Ranks& ranks) {
    TakingTurns turns(ranks, turn);
    play(turns);
  });
}

PlaceOptions options_of(Ranks* ranks) {
  return {.ranks = ranks, .precision = ProductPrecision::tf32};
}

std::unique_ptr<Place> make_place(const Recipe& recipe, Task& task, SiteStore& home, Ranks* ranks) {
  return ranks == nullptr ? make_cuda_place(recipe, task, home, options_of(ranks))
                          : make_cuda_ranks_place(recipe, task, home, options_of(ranks));
}

Played play(const Recipe& recipe, Ranks* ranks) {
  const auto task = make_task(recipe, "");
  const auto home = make_memory_store();
  const auto place = make_place(recipe, *task, *home, ranks);
  Played played = play_at(*place, *task, recipe);
  played.sites = sites_here(*task, place->sites());
  return played;
}

class CudaRanks : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = device_problem(); !why.empty()) GTEST_SKIP() << why;
  }
};

TEST_F(CudaRanks, PlayARunToTheBitsOfOneProcessWhateverTheirNumber) {
  for (const auto& [algorithm, method, bits] : {std::tuple{"fed_ep", "laplace", 64},
                                                {"fed_ep", "sample_moments", 32},
                                                {"fed_sep", "scaled_identity", 64},
                                                {"fed_ep", "ngvi", 64}}) {
    SCOPED_TRACE(std::string(algorithm) + " " + method);
    const Recipe recipe = uneven_recipe(algorithm, method, bits);
    const Played expected = play(recipe, nullptr);
    ASSERT_EQ(expected.rounds.size(), 8u);
    for (const std::size_t size : {1u, 2u, 3u, 7u}) {
      SCOPED_TRACE(size);
      std::vector<Played> all(size);
      play_in_turns(size, [&](Ranks& ranks) { all[ranks.rank()] = play(recipe, &ranks); });
      std::map<std::uint64_t, SiteState> sites;
      std::size_t held = 0;
      for (Played& played : all) {
        expect_same(played, expected);
        held += played.sites.size();
        sites.merge(played.sites);
      }
      EXPECT_EQ(sites, expected.sites);
      EXPECT_EQ(held, expected.sites.size());  // each lives in one place
    }
  }
}

// Networks' sums are cut the same way however many clients a rank has.
TEST_F(CudaRanks, TrainNetworksToTheBitsOfOneProcess) {
  for (const std::string model : {"cnn", "resnet_small"}) {
    for (const std::string method : {"scaled_identity", "sample_moments", "laplace", "ngvi"}) {
      SCOPED_TRACE(model + " " + method);
      World world(model, recipe_for(model, "fed_ep", method), model == "cnn");
      const Ended expected = world.on_gpu(ProductPrecision::tf32, nullptr);
      for (const std::size_t size : {2u, 3u}) {
        SCOPED_TRACE(size);
        std::vector<Ended> all(size);
        play_in_turns(size, [&](Ranks& ranks) {
          // Its own: what a world holds is not made for several threads.
          World own(model, recipe_for(model, "fed_ep", method), model == "cnn");
          all[ranks.rank()] = own.on_gpu_of(ranks, ProductPrecision::tf32);
        });
        std::vector<std::optional<SiteState>> sites(expected.sites.size());
        for (Ended& ended : all) {
          EXPECT_EQ(ended.state, expected.state);
          for (std::size_t k = 0; k < sites.size(); ++k) {
            if (ended.sites[k]) sites[k] = std::move(ended.sites[k]);
          }
        }
        EXPECT_EQ(sites, expected.sites);
      }
    }
  }
}

// Rounds of the second phase, from a state that was saved.
struct Half {
  ServerState state;
  SiteManifest saved;
  std::map<std::uint64_t, SiteState> sites;
};

TEST_F(CudaRanks, GoOnWithAnotherNumber) {
  const Recipe recipe = uneven_recipe("fed_ep", "laplace", 64);
  const TemporaryFolder folder;
  const auto phases = [&](const Task& task) {
    return plan_phases(recipe, [&](std::string_view name) { return task.family_of(name); });
  };
  const auto play_half = [&](Ranks* ranks, std::optional<Half> before) {
    const auto task = make_task(recipe, "");
    const auto home = make_disk_store(folder.path() / "sites");
    const auto place = make_place(recipe, *task, *home, ranks);
    const Phase phase = phases(*task)[1];
    Half half;
    if (before) {
      half.state = before->state;
      place->sites().restore(before->saved);
    } else {
      half.state = begin_phase(initial_server_state(recipe.server, task->initial_weights()), phase,
                               0, task->population());
      half.state.round = phase.first_round;
    }
    for (int i = 0; i < 3; ++i) place->play(half.state, phase);
    place->bring_home(half.state);
    half.saved = place->sites().save();
    half.sites = sites_here(*task, place->sites());
    return half;
  };
  const auto play_ranks_half = [&](std::size_t size, const std::optional<Half>& before) {
    std::vector<Half> all(size);
    play_in_turns(size, [&](Ranks& ranks) { all[ranks.rank()] = play_half(&ranks, before); });
    for (Half& half : all) all[0].sites.merge(half.sites);
    return all[0];
  };
  const Half first = play_half(nullptr, {}), whole = play_half(nullptr, first);
  ASSERT_FALSE(first.saved.empty());
  const Half by_two = play_ranks_half(2, {});
  EXPECT_EQ(by_two.state, first.state);
  EXPECT_EQ(by_two.saved, first.saved);
  for (const Half& end :
       {play_ranks_half(3, by_two), play_ranks_half(1, by_two), play_half(nullptr, by_two)}) {
    EXPECT_EQ(end.state, whole.state);
    EXPECT_EQ(end.saved, whole.saved);
    EXPECT_EQ(end.sites, whole.sites);
  }
}

// Longer than a piece, with a rest.
TEST_F(CudaRanks, AddArraysPieceByPiece) {
  constexpr std::size_t kSize = 2 * CudaRankSum::kPiece + 5;
  for (const int bits : {32, 64}) {
    const Grid grid{.eta_exponent = -1, .lambda_exponent = 2, .bits = bits};
    play_in_turns(3, [&](Ranks& ranks) {
      const std::int64_t unit = bits == 32 ? 1 : std::int64_t(1) << 20;
      DeltaUnits own{.eta = {}, .lambda = {}, .lambda_number = std::int64_t(ranks.rank())};
      std::vector<std::int64_t> units(kSize);
      for (std::size_t i = 0; i < kSize; ++i) units[i] = (std::int64_t(i) - 1000) * unit;
      if (bits == 32) {
        own.eta.narrow = DeviceArray<std::int32_t>(kSize);
        own.eta.narrow.upload(std::vector<std::int32_t>(units.begin(), units.end()));
      } else {
        own.eta.wide = DeviceArray<std::int64_t>(kSize);
        own.eta.wide.upload(units);
      }
      CudaRankSum sum(ranks);
      const Message total = to_host(sum.total(std::move(own), grid));
      ASSERT_EQ(total.size(), kSize);
      EXPECT_EQ(total.lambda_scalar(), 12.0f);
      for (std::size_t i = 0; i < kSize; i += 4099) {
        EXPECT_EQ(total.eta()[i], float(double(3 * units[i]) / 2));
      }
      EXPECT_EQ(total.eta()[kSize - 1], float(double(3 * units.back()) / 2));
    });
  }
}

TEST_F(CudaRanks, NeedALauncher) {
  const Recipe recipe = uneven_recipe("fed_ep", "laplace", 64);
  const auto task = make_task(recipe, "");
  const auto home = make_memory_store();
  EXPECT_THROW(make_cuda_ranks_place(recipe, *task, *home, {}), InputError);
}

}  // namespace
}  // namespace fedep
