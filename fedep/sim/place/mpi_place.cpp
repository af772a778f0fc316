#include "fedep/sim/place/mpi_place.h"

#include <utility>
#include <vector>

#include <fmt/format.h>

#include "fedep/data/fingerprint.h"
#include "fedep/message/error.h"
#include "fedep/sim/machine.h"
#include "fedep/sim/place/serial.h"
#include "fedep/sim/place/threads.h"
#include "fedep/sim/ranks/mpi_ranks.h"
#include "fedep/sim/ranks/rank_executor.h"

namespace fedep {
namespace {

std::uint64_t hash_of(const Message& message) {
  return fingerprint(std::as_bytes(message.eta().span())) ^
         (3 * fingerprint(std::as_bytes(message.lambda_span())));
}

class MpiPlace final : public Place {
 public:
  MpiPlace(const Recipe& recipe, Task& task, SiteStore& own, const PlaceOptions& options)
      : recipe_(recipe),
        task_(task),
        options_(options),
        ranks_(*options.ranks),
        sites_(ranks_, own) {
    const auto make_inference = [this] { return task_.make_inference(); };
    if (options.threads == 1) {
      serial_ = make_inference();
      own_ = make_serial(task.population(), *serial_, &own);
    } else {
      own_ = make_threads(task.population(), make_inference, &own, options.threads);
    }
    executor_ = make_rank_executor(
        {.population = task.population(),
         .ranks = ranks_,
         .sites = sites_,
         .threads = options.threads,
         .cost = [&](const ClientInfo& client) { return visit_cost(recipe_.client, client); }},
        *own_);
  }

  SiteStore& sites() override { return sites_; }
  RoundNumbers play(ServerState& state, const Phase& phase) override {
    const RoundNumbers numbers =
        play_round(state, phase, recipe_.seed, task_.population(), *executor_);
    check_same_state(ranks_, state);
    return numbers;
  }
  void bring_home(ServerState&) override {}
  bool all_stop(bool wished) override { return any_wishes(ranks_, wished); }
  Metrics evaluate(const ServerState& state, bool last) override {
    return task_.evaluate_over(ranks_, state, last);
  }
  Reliability reliability() const override { return task_.reliability(); }
  Temperatures temperatures() const override { return task_.temperatures(); }
  PlaceGauge gauge() override {
    PlaceGauge gauge;
    gauge.device = mpi_text(options_);
    return gauge;
  }

 private:
  const Recipe& recipe_;
  Task& task_;
  PlaceOptions options_;
  Ranks& ranks_;
  RankSites sites_;
  std::unique_ptr<LocalInference> serial_;
  std::unique_ptr<CollectingExecutor> own_;
  std::unique_ptr<Executor> executor_;
};

}  // namespace

std::string mpi_problem() { return mpi_ranks_problem(); }

std::string mpi_text(const PlaceOptions& options) {
  const std::size_t ranks = options.ranks == nullptr ? 1 : options.ranks->size();
  return fmt::format("cpu: {}, {} rank{} of {} thread{}", cpu_model(), ranks, ranks == 1 ? "" : "s",
                     options.threads, options.threads == 1 ? "" : "s");
}

std::unique_ptr<Place> make_mpi_place(const Recipe& recipe, Task& task, SiteStore& home,
                                      const PlaceOptions& options) {
  check_has_ranks("mpi", options);
  return std::make_unique<MpiPlace>(recipe, task, home, options);
}

void check_has_ranks(std::string_view place, const PlaceOptions& options) {
  if (options.ranks != nullptr) return;
  throw InputError(fmt::format(
      "place {}: ranks must have been started, by mpirun or srun, but this process stands alone",
      place));
}

bool any_wishes(Ranks& ranks, bool wished) {
  std::int32_t wishes = wished;
  ranks.sum(std::span(&wishes, 1));
  return wishes > 0;
}

void check_same_state(Ranks& ranks, const ServerState& state) {
  // ADMM's product of all factors is not in q before the next step.
  const std::uint64_t hash = hash_of(state.global) ^ (5 * hash_of(state.factors));
  check_same_hash(ranks, state.round, hash);
}

}  // namespace fedep
