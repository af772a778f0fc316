// Every algorithm with every method on the built-in models: serial, threads of any number and a run
// that was interrupted and resumed end in the same bits.

#include <filesystem>
#include <optional>
#include <set>

#include <malloc.h>

#include <gtest/gtest.h>

#include "fedep/config/resolve.h"
#include "fedep/data/made_up/synthetic.h"
#include "fedep/inference/method.h"
#include "fedep/model/registry.h"
#include "fedep/round/executor_place.h"
#include "fedep/sim/chain/local_learning.h"
#include "fedep/sim/place/serial.h"
#include "fedep/sim/place/threads.h"
#include "fedep/sim/score/evaluation.h"
#include "fedep/sim/task.h"
#include "fedep/sim/test_images.h"
#include "fedep/sim/test_recipe.h"
#include "fedep/store/run_keeper.h"
#include "fedep/store/site_files.h"

namespace fedep {
namespace {

// Questions of seven users: a few of 30 words each, any of 4 tags.
std::unique_ptr<Dataset> tiny_questions() {
  ClientRows users;
  Batch rows;
  Stream stream({.seed = 12});
  for (std::size_t user = 0; user < 7; ++user) {
    users.add("user-" + std::to_string(user), 5 + user);
    for (std::size_t i = 0; i < 5 + user; ++i, ++rows.size) {
      for (const std::size_t word : sample_without_replacement(stream, 30, 4)) {
        rows.sparse.columns.push_back(std::uint32_t(word));
        rows.sparse.values.push_back(0.25f);
      }
      rows.sparse.offsets.push_back(std::uint32_t(rows.sparse.columns.size()));
      for (const std::size_t tag : sample_without_replacement(stream, 4, stream.below(3))) {
        rows.tags.columns.push_back(std::uint32_t(tag));
      }
      rows.tags.offsets.push_back(std::uint32_t(rows.tags.columns.size()));
    }
  }
  DatasetInfo info{.name = "tiny questions",
                   .features = {30},
                   .sparse = true,
                   .target = TargetKind::tags,
                   .outputs = 4,
                   .feature_names = {},
                   .output_names = {}};
  return memory_dataset(std::move(info), {users, batch_rows(rows)}, {users, batch_rows(rows)});
}

std::unique_ptr<Dataset> data_for(const std::string& model) {
  if (model == "sparse") return tiny_questions();
  if (model == "linear") {
    return open_synthetic({.name = "synthetic", .clients = 7, .dimension = 20, .examples = 20}, 1);
  }
  if (model == "cnn") return tiny_images({8, 8, 1}, 4, {9, 5, 12, 3, 7, 8, 10});
  return tiny_images({8, 8, 3}, 4, {9, 5, 12, 3, 7, 8, 10});
}

// Two rounds of FedAvg, then three of the algorithm.
Recipe after_averaging(const std::string& model, std::string_view algorithm,
                       std::string_view method) {
  Recipe recipe = recipe_for(model == "sparse" ? "linear" : model, algorithm, method);
  recipe.client.epochs = 2;
  recipe.server.clients_per_round = 4;
  recipe.phases.insert(recipe.phases.begin(), {.algorithm = "fed_avg", .rounds = 2});
  return resolved(recipe);
}

struct Ended {
  ServerState state;
  std::vector<std::optional<SiteState>> sites;
  Metrics metrics;

  bool operator==(const Ended&) const = default;
};

class World {
 public:
  World(std::string model, std::string_view algorithm, std::string_view method)
      : World(model, after_averaging(model, algorithm, method)) {}
  World(const std::string& model, Recipe recipe)
      : data_(data_for(model)),
        recipe_(std::move(recipe)),
        model_(make_model(recipe_.model, data_->info())),
        population_(make_population(data_->clients())),
        phases_(
            plan_phases(recipe_, [](std::string_view name) { return find_method(name).family; })) {}

  // With `workers` threads, or serially with none; stopped after so many rounds if not 0.
  Ended play(std::size_t workers, const RunDirectory* directory, bool resume,
             std::int64_t stop_after, bool on_disk = false) {
    const auto sites = directory == nullptr ? make_memory_store()
                       : on_disk
                           ? make_disk_store(directory->sites())
                           : make_memory_store(std::make_unique<SiteFiles>(directory->sites()));
    const auto make_inference = [&] {
      return make_local_learning(*data_, population_, recipe_,
                                 make_model(recipe_.model, data_->info()));
    };
    const auto own = make_inference();
    const auto executor = workers == 0
                              ? make_serial(population_, *own, sites.get())
                              : make_threads(population_, make_inference, sites.get(), workers);
    Evaluation evaluation(*data_, make_model(recipe_.model, data_->info()));
    std::int64_t played = 0;
    ExecutorPlace place(
        recipe_.seed, population_, *executor, *sites,
        [&](const ServerState& s, bool) { return evaluation.at(point_estimate(s)); });
    const RunHooks hooks{.stop_requested = [&] { return ++played == stop_after; }};
    HostVector<float> initial(model_->size());
    model_->initialise(1, initial.span());
    std::optional<DiskKeeper> keeper;
    if (directory != nullptr) {
      keeper.emplace(KeptRun{recipe_, phases_, model_->layout(), *sites, *directory}, RunHeader{},
                     resume);
    }
    const RunResult result = play_run({recipe_, phases_, population_, model_->layout(), place},
                                      initial, hooks, keeper ? &*keeper : nullptr);
    EXPECT_EQ(result.end, stop_after > 0 ? RunEnd::interrupted : RunEnd::done);
    Ended ended{result.state, {}, result.metrics};
    for (std::size_t k = 0; k < population_.size(); ++k) {
      ended.sites.push_back(sites->get(population_[k].key));
    }
    return ended;
  }

  const Recipe& recipe() const { return recipe_; }
  const Phase& last_phase() const { return phases_.back(); }

 private:
  std::unique_ptr<Dataset> data_;
  Recipe recipe_;
  std::unique_ptr<Model> model_;
  Population population_;
  std::vector<Phase> phases_;
};

class Determinism : public testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  std::filesystem::path folder() const {
    std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
    for (char& c : name) c = c == '/' ? '-' : c;
    return std::filesystem::path(testing::TempDir()) / ("fedep-" + name);
  }
  ~Determinism() override { std::filesystem::remove_all(folder()); }
};

TEST_P(Determinism, SerialThreadsAndResumedRunsEndInTheSameBits) {
  const auto& [model, algorithm] = GetParam();
  const Algorithm& row = find_algorithm(algorithm);
  const bool infers = !row.point_estimate;
  std::vector<std::string_view> names{algorithm == "fed_pa" ? "sample_moments" : ""};
  if (infers) {
    names.clear();
    for (const Method& method : methods()) {
      const bool any = row.methods[0].empty();
      if (any || std::ranges::count(row.methods, method.name) > 0) names.push_back(method.name);
    }
  }
  for (const std::string_view method : names) {
    SCOPED_TRACE(method);
    World world(model, algorithm, method);
    const Ended serial = world.play(0, nullptr, false, 0);
    EXPECT_EQ(serial.state.round, 5);
    EXPECT_TRUE(is_finite(serial.state.global));
    std::size_t visited = 0;
    for (const auto& site : serial.sites) visited += site.has_value();
    EXPECT_EQ(visited > 0, world.last_phase().stateful());
    for (const std::size_t workers : {1u, 2u, 4u}) {
      EXPECT_EQ(world.play(workers, nullptr, false, 0), serial) << workers;
    }
    // Before, just after and well after the hand-over; the last for all models.
    for (const std::int64_t stop : {1, 3, 4}) {
      if (model != "linear" && stop != 4) continue;
      std::filesystem::remove_all(folder());
      const RunDirectory begun = RunDirectory::create(folder(), world.recipe());
      EXPECT_EQ(world.play(2, &begun, false, stop).state.round, stop);
      const RunDirectory again = RunDirectory::reopen(folder(), world.recipe());
      EXPECT_EQ(world.play(stop == 3 ? 4 : 0, &again, true, 0, stop == 4), serial) << stop;
    }
  }
}

TEST(WithoutFactors, AStoppedRunGoesOnFromTheBeginningOfItsPhase) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / "fedep-without-factors";
  std::filesystem::remove_all(folder);
  Recipe recipe = after_averaging("linear", "fed_ep", "scaled_identity");
  recipe.checkpoint.every = 1;
  recipe.checkpoint.factors = false;
  World world("linear", recipe);
  const Ended whole = world.play(0, nullptr, false, 0);
  const RunDirectory directory = RunDirectory::create(folder, world.recipe());
  world.play(0, &directory, false, 4);  // two rounds into the second phase
  EXPECT_EQ(directory.checkpoints(), (std::vector<std::int64_t>{2, 4}));
  EXPECT_EQ(world.play(0, &directory, true, 0), whole);
  EXPECT_EQ(directory.checkpoints().back(), 5);
  std::filesystem::remove_all(folder);
}

INSTANTIATE_TEST_SUITE_P(
    Models, Determinism,
    testing::Combine(testing::Values("linear", "sparse", "cnn", "resnet_small"),
                     testing::Values("fed_avg", "fed_pa", "fed_ep", "fed_sep")),
    [](const auto& given) { return std::get<0>(given.param) + "_" + std::get<1>(given.param); });

INSTANTIATE_TEST_SUITE_P(Field, Determinism,
                         testing::Combine(testing::Values("linear", "cnn"),
                                          testing::Values("fed_prox", "fed_dyn", "pvi", "fed_lap",
                                                          "fed_lap_cov", "bayes_admm", "fed_ivon")),
                         [](const auto& given) {
                           return std::get<0>(given.param) + "_" + std::get<1>(given.param);
                         });

// Heap in use after 30 rounds, beyond what it was before the first, with so many clients; and how
// many of them are remembered. Every client has one example, of 1000 features.
struct Growth {
  std::int64_t bytes;
  std::size_t remembered;
};

Growth growth_of(std::string_view algorithm, std::size_t clients) {
  const std::unique_ptr<Dataset> data =
      tiny_images({1, 1000, 1}, 10, std::vector<std::size_t>(clients, 1));
  Recipe recipe = recipe_for("linear", algorithm, "laplace");
  recipe.server.clients_per_round = 4;
  recipe.phases[0].rounds = 30;
  const auto phases =
      plan_phases(recipe, [](std::string_view name) { return find_method(name).family; });
  const Population population = make_population(data->clients());
  const auto learning =
      make_local_learning(*data, population, recipe, make_model(recipe.model, data->info()));
  const auto sites = make_memory_store();
  const auto executor = make_serial(population, *learning, sites.get());
  ServerState state = begin_phase(initial_server_state(recipe.server, HostVector<float>(10010)),
                                  phases[0], 0, population);
  play_round(state, phases[0], 1, population, *executor);  // scratch memory of the model
  const std::int64_t before = std::int64_t(mallinfo2().uordblks + mallinfo2().hblkhd);
  std::set<std::size_t> asked;
  for (int round = 0; round < 30; ++round) {
    for (const std::size_t k : sample_clients(1, round, clients, 4)) asked.insert(k);
    if (round > 0) play_round(state, phases[0], 1, population, *executor);
  }
  EXPECT_EQ(sites->visited(), phases[0].stateful() ? asked.size() : 0u);
  return {std::int64_t(mallinfo2().uordblks + mallinfo2().hblkhd) - before, sites->visited()};
}

// Sanitizers have heaps of their own, which nobody counts.
bool heap_is_counted() {
  const auto in_use = [] { return mallinfo2().uordblks + mallinfo2().hblkhd; };
  const std::size_t before = in_use();
  const std::vector<float> some(100000, 1.0f);
  return in_use() >= before + some.size() * sizeof(float);
}

TEST(Memory, OfAStatelessRunDoesNotGrowWithTheNumberOfClients) {
  if (!heap_is_counted()) GTEST_SKIP() << "this heap is not counted";
  for (const std::string_view algorithm : {"fed_avg", "fed_pa", "fed_sep"}) {
    for (const std::size_t clients : {10u, 400u}) {
      EXPECT_LT(growth_of(algorithm, clients).bytes, 20000) << algorithm << clients;
    }
  }
}

TEST(Memory, OfAStatefulRunGrowsWithTheClientsVisited) {
  if (!heap_is_counted()) GTEST_SKIP() << "this heap is not counted";
  // Factor and momentum, eta and lambda of each: four vectors of 10,010 floats.
  constexpr double kSite = 4 * 10010 * sizeof(float);
  for (const std::size_t clients : {10u, 50u, 400u}) {
    const Growth growth = growth_of("fed_ep", clients);
    EXPECT_GE(growth.remembered, std::min<std::size_t>(clients, 30));
    const double sites = double(growth.remembered - 4) * kSite;  // four were there before
    EXPECT_NEAR(double(growth.bytes), sites, 0.02 * sites + 20000) << clients;
  }
}

// Heap of a task whose clients' examples are made when somebody asks for them.
double bytes_registered(int clients) {
  Recipe recipe = recipe_for("linear", "fed_ep", "laplace");
  recipe.data.name = "random_tags";
  recipe.data.clients = clients;
  const std::size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
  const std::unique_ptr<Task> task = make_task(recipe, "");
  return double(mallinfo2().uordblks + mallinfo2().hblkhd - before);
}

TEST(Memory, OfAClientThatIsRegisteredIsLessThanAHundredBytes) {
  if (!heap_is_counted()) GTEST_SKIP() << "this heap is not counted";
  // Its id twice, in the data set and in the population, with numbers, and its place among all keys.
  EXPECT_NEAR((bytes_registered(101000) - bytes_registered(1000)) / 100000, 40 + 48 + 4, 0.5);
}

}  // namespace
}  // namespace fedep
