// What a round costs beside its clients, where ranks share it: the time from the last rank's last visit
// until every rank has the sum, against a bare sum of as many integers in the same run, round by round.
//
//   mpirun -n 2 build-mpi/bin/fedep_bench_ranks RECIPE [ROUNDS] [THREADS]       data: $FEDEP_DATA
//
// Ranks must be on one machine: their clocks are compared.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "fedep/config/read_recipe.h"
#include "fedep/round/play_round.h"
#include "fedep/sim/place/serial.h"
#include "fedep/sim/place/threads.h"
#include "fedep/sim/process.h"
#include "fedep/sim/ranks/mpi_ranks.h"
#include "fedep/sim/ranks/rank_executor.h"
#include "fedep/sim/task.h"

namespace fedep {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Remembers when this rank's last visit was over.
class OwnVisits final : public CollectingExecutor {
 public:
  explicit OwnVisits(CollectingExecutor& visits) : visits_(visits) {}

  void play_into(Collector& answers, const RoundTask& round, std::span<const ClientTask> clients,
                 const std::function<void()>& meanwhile) override {
    visits_.play_into(answers, round, clients, meanwhile);
    over = now();
  }
  void settle(const RoundTask& round, std::span<const std::size_t> taken,
              const StepPart& part) override {
    visits_.settle(round, taken, part);
  }

  double over = 0;

 private:
  CollectingExecutor& visits_;
};

// Remembers when the sum was there, and how many integers were added.
class AllVisits final : public Executor {
 public:
  explicit AllVisits(Executor& executor) : executor_(executor) {}

  Answers play(const RoundTask& round, std::span<const ClientTask> clients) override {
    Answers answers = executor_.play(round, clients);
    over = now();
    numbers = answers.total.eta().size() + answers.total.lambda_span().size();
    bits = round.grid.bits;
    return answers;
  }
  void settle(const RoundTask& round, std::span<const std::size_t> taken,
              const StepPart& part) override {
    executor_.settle(round, taken, part);
  }

  double over = 0;
  std::size_t numbers = 0;
  int bits = 64;

 private:
  Executor& executor_;
};

double latest(Ranks& ranks, double time) {
  double last = time;
  for (const Bytes& told : ranks.gather(bytes_of(time))) {
    last = std::max(last, values_of<double>(told).at(0));
  }
  return last;
}

// Of as many integers as a round adds, from when all ranks are ready.
double bare_sum(Ranks& ranks, std::size_t numbers, int bits) {
  std::vector<std::int64_t> wide(bits > 32 ? numbers : 0, 1);
  std::vector<std::int32_t> narrow(bits > 32 ? 0 : numbers, 1);
  ranks.gather({});
  const double begin = now();
  bits > 32 ? ranks.sum(wide) : ranks.sum(narrow);
  const double end = now();
  return latest(ranks, end) - latest(ranks, begin);
}

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + std::ptrdiff_t(values.size() / 2));
  return values[values.size() / 2];
}

void measure(Ranks& ranks, const std::string& file, int rounds, std::size_t threads) {
  const char* const data = std::getenv("FEDEP_DATA");
  const Recipe recipe = read_recipe(file);
  const auto task = make_task(recipe, data == nullptr ? "" : data);
  const auto phases =
      plan_phases(recipe, [&](std::string_view name) { return task->family_of(name); });
  const auto make_inference = [&] { return task->make_inference(); };
  const auto one = make_inference();
  const auto home = make_memory_store();
  const auto visits = threads == 1
                          ? make_serial(task->population(), *one, home.get())
                          : make_threads(task->population(), make_inference, home.get(), threads);
  OwnVisits own(*visits);
  RankSites sites(ranks, *home);
  const auto cost = [](const ClientInfo& client) { return std::int64_t(client.examples); };
  const auto shared = make_rank_executor({task->population(), ranks, sites, threads, cost}, own);
  AllVisits all(*shared);
  ServerState state =
      begin_phase(initial_server_state(recipe.server, task->initial_weights(), task->priors()),
                  phases[0], 0, task->population());
  std::vector<double> waits, sums, lasts;
  for (int round = 0; round < rounds; ++round) {
    const double begin = latest(ranks, now());
    play_round(state, phases[0], recipe.seed, task->population(), all);
    const double visited = latest(ranks, own.over), summed = latest(ranks, all.over);
    lasts.push_back(summed - begin);
    waits.push_back(summed - visited);
    sums.push_back(bare_sum(ranks, all.numbers, all.bits));
  }
  if (!ranks.is_first()) return;
  fmt::print("{} ranks x {} threads, {} integers of {} bits, {} rounds\n", ranks.size(), threads,
             all.numbers, all.bits, rounds);
  const auto line = [](const char* name, const std::vector<double>& seconds) {
    fmt::print("{:32} median {:9.3f} ms, least {:9.3f} ms\n", name, 1e3 * median(seconds),
               1e3 * std::ranges::min(seconds));
  };
  line("round until the sum is there", lasts);
  line("last visit to sum", waits);
  line("bare sum", sums);
  fmt::print("ratio of medians {:.3f}, of the least {:.3f}\n", median(waits) / median(sums),
             std::ranges::min(waits) / std::ranges::min(sums));
}

}  // namespace
}  // namespace fedep

int main(int argc, char** argv) {
  try {
    fedep::prepare_process();
    if (argc < 2) throw std::runtime_error("usage: fedep_bench_ranks RECIPE [ROUNDS] [THREADS]");
    const auto ranks = fedep::start_mpi_ranks();
    if (ranks == nullptr) throw std::runtime_error("two ranks or more must be started by mpirun");
    fedep::measure(*ranks, argv[1], argc > 2 ? std::atoi(argv[2]) : 20,
                   argc > 3 ? std::size_t(std::atoi(argv[3])) : 1);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
