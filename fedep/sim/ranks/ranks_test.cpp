// Ranks against one process: whatever their number, the same states, factors, scores and log.

#include "fedep/sim/ranks/ranks.h"

#include <atomic>
#include <cmath>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "fedep/config/resolve.h"
#include "fedep/message/error.h"
#include "fedep/sim/place/mpi_place.h"
#include "fedep/sim/place/places.h"
#include "fedep/sim/ranks/gathered_pieces.h"
#include "fedep/sim/ranks/mpi_ranks.h"
#include "fedep/sim/ranks/rank_executor.h"
#include "fedep/sim/ranks/test_thread_ranks.h"
#include "fedep/sim/ranks/test_uneven_run.h"

namespace fedep {
namespace {

Played play(const Recipe& recipe, const PlaceRow& row, const PlaceOptions& options) {
  const auto task = make_task(recipe, "");
  const auto home = make_memory_store();
  const auto place = row.make(recipe, *task, *home, options);
  Played played = play_at(*place, *task, recipe);
  played.sites = sites_here(*task, *home);
  return played;
}

bool is_same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

void expect_same_gaps(const Played& played, const Played& expected) {
  ASSERT_EQ(played.rounds.size(), expected.rounds.size());
  for (std::size_t i = 0; i < expected.rounds.size(); ++i) {
    const FactorGap &gap = played.rounds[i].numbers.factor_gap,
                    &wanted = expected.rounds[i].numbers.factor_gap;
    EXPECT_TRUE(is_same(gap.eta, wanted.eta));
    EXPECT_TRUE(is_same(gap.lambda, wanted.lambda));
  }
}

const PlaceRow& mpi_row() { return find_place("cpu", 1, true); }

struct RanksCase {
  std::string algorithm;
  int grid_bits;
  std::size_t threads;
};

class PlayedByRanks : public testing::TestWithParam<RanksCase> {};

TEST_P(PlayedByRanks, ARunHasTheBitsOfOneProcessWhateverTheirNumber) {
  const RanksCase& given = GetParam();
  const Recipe recipe = uneven_recipe(given.algorithm, "laplace", given.grid_bits);
  const Played expected = play(recipe, find_place("cpu", 1), {});
  ASSERT_EQ(expected.rounds.size(), 8u);
  for (const std::size_t size : {1u, 2u, 3u, 7u}) {
    SCOPED_TRACE(size);
    std::vector<Played> all(size);
    play_ranks(size, [&](Ranks& ranks) {
      all[ranks.rank()] = play(recipe, mpi_row(), {.threads = given.threads, .ranks = &ranks});
    });
    std::map<std::uint64_t, SiteState> sites;
    std::size_t held = 0;
    for (Played& played : all) {
      expect_same(played, expected);
      expect_same_gaps(played, expected);
      held += played.sites.size();
      sites.merge(played.sites);
    }
    EXPECT_EQ(sites, expected.sites);
    EXPECT_EQ(held, expected.sites.size());  // each lives in one place
  }
}

INSTANTIATE_TEST_SUITE_P(Runs, PlayedByRanks,
                         testing::Values(RanksCase{"fed_ep", 64, 1}, RanksCase{"fed_ep", 32, 1},
                                         RanksCase{"fed_ep", 64, 2}, RanksCase{"fed_sep", 64, 1},
                                         RanksCase{"fed_dyn", 64, 1},
                                         RanksCase{"bayes_admm", 64, 2}),
                         [](const auto& row) {
                           return row.param.algorithm + "_" + std::to_string(row.param.grid_bits) +
                                  "_" + std::to_string(row.param.threads);
                         });

// Factors without zeros travel too; with one precision for all weights they refer to q's means, which
// every rank has.
TEST(RanksTogether, PlaySparseFactorsToTheSameBits) {
  for (const std::string method : {"laplace", "scaled_identity"}) {
    SCOPED_TRACE(method);
    Recipe plan;
    plan.data = {.name = "random_tags",
                 .clients = 11,
                 .dimension = 150,
                 .examples = 8,
                 .tags = 8,
                 .max_examples = 12};
    plan.client = {.epochs = 2, .batch = 4, .optimizer = {.lr = 0.5, .momentum = 0.9}};
    plan.server.clients_per_round = 5;
    plan.server.prior = PriorSettings{.mean = 0.1, .precision = 1};
    plan.checkpoint.every = 2;
    plan.checkpoint.sparse = true;
    plan.phases.push_back({.algorithm = "fed_ep", .rounds = 7});
    plan.phases[0].inference = InferenceSettings{.name = method, .alpha = 0.1};
    plan.phases[0].factors = FactorStart::flat;
    const Recipe recipe = resolved(plan);
    const Played expected = play(recipe, find_place("cpu", 1), {});
    for (const std::size_t size : {2u, 3u, 7u}) {
      SCOPED_TRACE(size);
      std::vector<Played> all(size);
      play_ranks(size, [&](Ranks& ranks) {
        all[ranks.rank()] = play(recipe, mpi_row(), {.ranks = &ranks});
      });
      std::map<std::uint64_t, SiteState> sites;
      for (Played& played : all) {
        expect_same(played, expected);
        expect_same_gaps(played, expected);
        sites.merge(played.sites);
      }
      EXPECT_EQ(sites, expected.sites);
    }
  }
}

// Who is asked next is known, and so is where their factors are and will be needed.
TEST(RanksTogether, BringFactorsOfTheNextRoundWhileThisOneIsPlayed) {
  for (const std::size_t threads : {1u, 2u}) {
    std::atomic<int> background = 0;
    const Recipe recipe = uneven_recipe("fed_ep", "laplace", 64);
    play_ranks(3, [&](Ranks& ranks) {
      play(recipe, mpi_row(), {.threads = threads, .ranks = &ranks});
      background += dynamic_cast<ThreadRanks&>(ranks).background;
    });
    EXPECT_GT(background, 0);
  }
}

TEST(RanksTogether, StopWhereOneWishesTo) {
  const Recipe recipe = uneven_recipe("fed_ep", "laplace", 64);
  play_ranks(3, [&](Ranks& ranks) {
    const auto task = make_task(recipe, "");
    const auto home = make_memory_store();
    const auto place = mpi_row().make(recipe, *task, *home, {.ranks = &ranks});
    EXPECT_FALSE(place->all_stop(false));
    EXPECT_TRUE(place->all_stop(ranks.rank() == 2));
    EXPECT_FALSE(place->all_stop(false));
  });
}

TEST(RanksTogether, SeeAQThatIsNotEverybodys) {
  play_ranks(3, [&](Ranks& ranks) {
    ServerState state;
    state.global = Message(HostVector<float>{1, 2}, HostVector<float>{3, 4});
    EXPECT_NO_THROW(check_same_state(ranks, state));
    const ServerState good = state;
    if (ranks.rank() == 1) state.global.lambda_span()[1] = 4.0000005f;
    EXPECT_THROW(check_same_state(ranks, state), RunError);
    // Nor ADMM's product of factors.
    state = good;
    state.factors = good.global;
    EXPECT_NO_THROW(check_same_state(ranks, state));
    if (ranks.rank() == 2) state.factors.eta()[0] = 2;
    EXPECT_THROW(check_same_state(ranks, state), RunError);
  });
}

// A bit that falls over in one rank's memory: from then on it would play another run.
TEST(RanksTogether, EndARunWhenOneHasAnotherSum) {
  const Recipe recipe = uneven_recipe("fed_ep", "laplace", 64);
  play_ranks(3, [&](Ranks& ranks) {
    const auto task = make_task(recipe, "");
    const auto home = make_memory_store();
    const auto place = mpi_row().make(recipe, *task, *home, {.ranks = &ranks});
    const auto phases =
        plan_phases(recipe, [&](std::string_view name) { return task->family_of(name); });
    std::int64_t played = 0;
    if (ranks.rank() == 1) {
      dynamic_cast<ThreadRanks&>(ranks).after_sum = [&](std::span<std::int64_t> sum) {
        if (played == 2) sum[0] ^= std::int64_t(1) << 60;
      };
    }
    std::string why;
    try {
      play_run({recipe, phases, task->population(), task->layout(), *place},
               task->initial_weights(),
               {.watch = [&](const RoundReport& report) { played = report.round + 1; },
                .stop_requested = [&] { return played == 2; }});
    } catch (const RunError& error) {
      why = error.what();
    }
    EXPECT_EQ(played, 2);
    EXPECT_NE(why.find("round 3: all ranks must have come to the same q, but rank 1's is another"),
              std::string::npos)
        << why;
  });
}

TEST(RanksTogether, AddIntegersOfEitherWidth) {
  for (const int bits : {32, 64}) {
    play_ranks(4, [&](Ranks& ranks) {
      const std::int64_t large = std::int64_t(1) << (bits - 4);
      std::vector<std::int64_t> units{large, -large, std::int64_t(ranks.rank())};
      std::vector<float> out(3);
      add_over_ranks(ranks, units, bits, -2, out);
      EXPECT_EQ(units, (std::vector<std::int64_t>{4 * large, -4 * large, 6}));
      EXPECT_EQ(out, (std::vector<float>{float(large), -float(large), 1.5f}));
    });
  }
}

// Longer than a piece, with a rest.
TEST(RanksTogether, AddLongArraysPieceByPiece) {
  constexpr std::size_t kSize = (std::size_t(1) << 19) + 5;
  for (const int bits : {32, 64}) {
    play_ranks(3, [&](Ranks& ranks) {
      std::vector<std::int64_t> units(kSize);
      for (std::size_t i = 0; i < kSize; ++i) units[i] = std::int64_t(i) - 1000;
      std::vector<float> out(kSize);
      add_over_ranks(ranks, units, bits, 0, out);
      for (std::size_t i = 0; i < kSize; i += 4099) {
        EXPECT_EQ(units[i], 3 * (std::int64_t(i) - 1000));
        EXPECT_EQ(out[i], float(units[i]));
      }
      EXPECT_EQ(units.back(), 3 * (std::int64_t(kSize) - 1001));
      EXPECT_EQ(out.back(), float(units.back()));
    });
  }
}

TEST(RanksTogether, FormGroupsThatKnowOnlyThemselves) {
  play_ranks(5, [&](Ranks& ranks) {
    for (const std::size_t size : {1u, 2u, 5u}) {
      const auto group = ranks.group(size);
      EXPECT_EQ(group->rank(), ranks.rank() % size);
      EXPECT_EQ(group->size(), std::min<std::size_t>(size, 5 - ranks.rank() / size * size));
      std::vector<std::int64_t> one{1};
      group->sum(one);
      EXPECT_EQ(one[0], std::int64_t(group->size()));
    }
    std::vector<std::int64_t> all{1};
    ranks.sum(all);
    EXPECT_EQ(all[0], 5);
  });
}

TEST(GatheredPieces, LieOneBehindAnother) {
  const GatheredPieces pieces = gathered_pieces(std::vector<std::uint64_t>{3, 0, 5});
  EXPECT_EQ(pieces.sizes, (std::vector<int>{3, 0, 5}));
  EXPECT_EQ(pieces.begins, (std::vector<int>{0, 3, 3}));
  EXPECT_EQ(pieces.total, 8u);
}

// Cast to int before they are looked at, 4 GiB and 7 bytes are 7.
TEST(GatheredPieces, AreRefusedWhereMpiCouldNotCountThem) {
  const std::uint64_t most = (std::uint64_t(1) << 31) - 1;
  EXPECT_EQ(gathered_pieces(std::vector{most - 1, std::uint64_t(1)}).total, most);
  for (const std::uint64_t size : {most, most + 1, (std::uint64_t(1) << 32) + 7}) {
    EXPECT_THROW(gathered_pieces(std::vector{std::uint64_t(1), size}), RunError) << size;
  }
}

TEST(Launch, IsReadFromTheLaunchersVariables) {
  const Launch nobody = launch_of([](const char*) -> const char* { return nullptr; });
  EXPECT_EQ(nobody.launcher, "");
  EXPECT_EQ(nobody.ranks, 1u);
  const Launch slurm = launch_of([](const char* name) -> const char* {
    const std::string_view asked = name;
    return asked == "SLURM_STEP_NUM_TASKS" ? "4" : asked == "SLURM_PROCID" ? "3" : nullptr;
  });
  EXPECT_EQ(slurm.launcher, "srun");
  EXPECT_EQ(slurm.ranks, 4u);
  EXPECT_EQ(slurm.rank, 3u);
  // In a batch script itself there are no ranks.
  EXPECT_EQ(launch_of([](const char* name) -> const char* {
              return std::string_view(name) == "SLURM_PROCID" ? "0" : nullptr;
            }).launcher,
            "");
}

TEST(Launch, SaysWhichOfItsMachineAProcessIs) {
  EXPECT_EQ(local_rank_of([](const char*) -> const char* { return nullptr; }), 0u);
  // In a batch script srun's variable is the script's own.
  const auto both = [](const char* name) -> const char* {
    const std::string_view asked = name;
    return asked == "OMPI_COMM_WORLD_LOCAL_RANK" ? "3" : asked == "SLURM_LOCALID" ? "0" : nullptr;
  };
  EXPECT_EQ(local_rank_of(both), 3u);
  EXPECT_EQ(local_rank_of([](const char* name) -> const char* {
              return std::string_view(name) == "SLURM_LOCALID" ? "5" : nullptr;
            }),
            5u);
}

TEST(MpiPlace, NeedsRanks) {
  const Recipe recipe = uneven_recipe("fed_ep", "laplace", 64);
  const auto task = make_task(recipe, "");
  const auto home = make_memory_store();
  EXPECT_THROW(mpi_row().make(recipe, *task, *home, {}), InputError);
}

}  // namespace
}  // namespace fedep
