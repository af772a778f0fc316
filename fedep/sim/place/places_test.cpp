#include "fedep/sim/place/places.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

#include "fedep/config/resolve.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

// A small recipe of every kind of memory: factors kept, a family of precisions, an average.
Recipe small_recipe() {
  Recipe plan;
  plan.data = {.name = "synthetic", .clients = 6, .dimension = 5, .examples = 30};
  plan.client = {.epochs = 2, .batch = 5, .optimizer = {.lr = 0.02, .momentum = 0.9}};
  plan.server.clients_per_round = 4;
  plan.server.prior = PriorSettings{.mean = 0, .precision = 1};
  plan.phases.push_back({.algorithm = "fed_ep", .rounds = 5});
  plan.phases[0].inference = InferenceSettings{.name = "laplace", .alpha = 0.02};
  plan.phases[0].average = AverageSettings{.rounds = 3};
  plan.phases[0].schedule = ScheduleSettings{.visit_rate = VisitSchedule{.to = 0.5}};
  plan.data.calibration_fraction = 0.1;
  plan.evaluate.samples = 2;
  return resolved(plan);
}

struct Played {
  ServerState state;
  std::vector<std::optional<SiteState>> sites;
  Metrics scores;
  Temperatures temperatures;
};

Played play(const PlaceRow& row, std::size_t threads) {
  const Recipe recipe = small_recipe();
  const auto task = make_task(recipe, "");
  row.check(recipe, *task);
  const auto home = make_memory_store();
  const auto place =
      row.make(recipe, *task, *home, {.threads = threads, .precision = ProductPrecision::float32});
  const Phase phase =
      plan_phases(recipe, [&](std::string_view name) { return task->family_of(name); })[0];
  Played played;
  played.state = begin_phase(initial_server_state(recipe.server, task->initial_weights()), phase, 0,
                             task->population());
  for (int i = 0; i < recipe.phases[0].rounds; ++i) {
    EXPECT_EQ(place->play(played.state, phase).answered, 4u);
  }
  played.scores = place->evaluate(played.state, true);
  played.temperatures = place->temperatures();
  place->bring_home(played.state);
  for (std::size_t k = 0; k < task->population().size(); ++k) {
    played.sites.push_back(place->sites().get(task->population()[k].key));
  }
  EXPECT_FALSE(place->gauge().device.empty());
  return played;
}

class Places : public testing::TestWithParam<const PlaceRow*> {};

std::vector<const PlaceRow*> every_place() {
  std::vector<const PlaceRow*> rows;
  for (const PlaceRow& row : places()) rows.push_back(&row);
  return rows;
}

TEST_P(Places, AreNamedAndFoundByTheirDevice) {
  const PlaceRow& row = *GetParam();
  EXPECT_FALSE(row.name.empty());
  EXPECT_FALSE(row.summary.empty());
  const std::size_t threads = row.most_threads == 1 ? 1 : 2;
  EXPECT_EQ(find_place(row.device, threads, row.over_ranks).name, row.name);
  if (row.claim != nullptr) row.claim();
  EXPECT_EQ(row.problem().find('\n'), std::string::npos);
  if (row.problem().empty()) {
    EXPECT_EQ(row.text({.threads = threads}).find(row.device), 0u);
  }
}

// `serial` is the specification. A GPU sums in another order, and draws labels from sums.
TEST_P(Places, PlayTheSerialPlacesRoundsOrRefuse) {
  const PlaceRow& row = *GetParam();
  if (!row.problem().empty()) {  // then nobody can be played there
    EXPECT_THROW(play(row, 3), InputError);
    return;
  }
  if (row.over_ranks) {
    GTEST_SKIP() << (row.own_memory ? "sim/gpu/cuda_ranks_test.cpp" : "sim/ranks/ranks_test.cpp")
                 << " plays there";
  }
  const Played expected = play(find_place("cpu", 1), 1);
  const Played played = play(row, 3);
  EXPECT_EQ(played.state.round, expected.state.round);
  if (row.own_memory) {
    const HostVector<float> off = mean(played.state.global) - mean(expected.state.global);
    EXPECT_LT(dot(off, off), 0.01 * dot(mean(expected.state.global), mean(expected.state.global)));
    const HostVector<float>& average = expected.state.average.mean;
    const HostVector<float> average_off = played.state.average.mean - average;
    EXPECT_LT(dot(average_off, average_off), 0.01 * dot(average, average));
    EXPECT_EQ(played.state.average.rounds, expected.state.average.rounds);
    ASSERT_EQ(played.scores.size(), expected.scores.size());
    for (std::size_t i = 0; i < expected.scores.size(); ++i) {
      EXPECT_EQ(played.scores[i].first, expected.scores[i].first);
    }
    EXPECT_NEAR(played.temperatures.average / expected.temperatures.average, 1, 0.2);
    for (std::size_t k = 0; k < expected.sites.size(); ++k) {
      EXPECT_EQ(played.sites[k].has_value(), expected.sites[k].has_value());
    }
  } else {
    EXPECT_EQ(played.state, expected.state);
    EXPECT_EQ(played.sites, expected.sites);
    EXPECT_EQ(played.scores, expected.scores);
    EXPECT_EQ(played.temperatures, expected.temperatures);
  }
}

INSTANTIATE_TEST_SUITE_P(Table, Places, testing::ValuesIn(every_place()),
                         [](const auto& row) { return std::string(row.param->name); });

TEST(PlacesTable, HasNoNameTwiceAndSuggestsTheNearestDevice) {
  std::set<std::string_view> names;
  for (const PlaceRow& row : places()) EXPECT_TRUE(names.insert(row.name).second) << row.name;
  EXPECT_EQ(find_place("cpu", 1).name, "serial");
  EXPECT_EQ(find_place("cpu", 2).name, "threads");
  try {
    find_place("cud", 1);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean cuda?"), std::string::npos);
  }
}

TEST(ProductPrecisions, AreKnownByName) {
  EXPECT_EQ(find_precision("tf32"), ProductPrecision::tf32);
  EXPECT_EQ(find_precision("float32"), ProductPrecision::float32);
  EXPECT_THROW(find_precision("float16"), InputError);
}

}  // namespace
}  // namespace fedep
