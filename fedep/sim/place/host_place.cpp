#include "fedep/sim/place/host_place.h"

#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "fedep/sim/machine.h"
#include "fedep/sim/place/serial.h"
#include "fedep/sim/place/threads.h"

namespace fedep {
namespace {

// Adds up how long inference takes.
class Timed final : public LocalInference {
 public:
  explicit Timed(std::unique_ptr<LocalInference> inner) : inner_(std::move(inner)) {}

  Reach reach(const Phase& phase, const ClientInfo& client) const override {
    return inner_->reach(phase, client);
  }
  ClientRun infer(const Visit& visit, VisitNumbers& numbers) override {
    const auto start = std::chrono::steady_clock::now();
    ClientRun run = inner_->infer(visit, numbers);
    seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return run;
  }

  double seconds = 0;

 private:
  std::unique_ptr<LocalInference> inner_;
};

class HostPlace final : public Place {
 public:
  HostPlace(const Recipe& recipe, Task& task, SiteStore& sites, std::size_t threads)
      : recipe_(recipe), task_(task), sites_(sites), threads_(threads) {
    const auto make_timed = [this] {
      auto timed = std::make_unique<Timed>(task_.make_inference());
      clocks_.push_back(timed.get());
      return timed;
    };
    if (threads == 1) {
      serial_ = make_timed();
      executor_ = make_serial(task.population(), *serial_, &sites);
    } else {
      executor_ = make_threads(task.population(), make_timed, &sites, threads);
    }
  }

  SiteStore& sites() override { return sites_; }
  RoundNumbers play(ServerState& state, const Phase& phase) override {
    for (Timed* clock : clocks_) clock->seconds = 0;
    return play_round(state, phase, recipe_.seed, task_.population(), *executor_);
  }
  void bring_home(ServerState&) override {}
  Metrics evaluate(const ServerState& state, bool last) override {
    return task_.evaluate(state, last);
  }
  Reliability reliability() const override { return task_.reliability(); }
  Temperatures temperatures() const override { return task_.temperatures(); }

  double training_seconds() const override {
    double seconds = 0;
    for (const Timed* clock : clocks_) seconds += clock->seconds;
    return seconds / double(threads_);
  }
  PlaceGauge gauge() override {
    PlaceGauge gauge;
    gauge.device = threads_ == 1 ? "cpu, one core" : fmt::format("cpu, {} cores", threads_);
    return gauge;
  }

 private:
  const Recipe& recipe_;
  Task& task_;
  SiteStore& sites_;
  std::size_t threads_;
  std::vector<Timed*> clocks_;  // of serial_, or of the executor's workers
  std::unique_ptr<LocalInference> serial_;
  std::unique_ptr<Executor> executor_;
};

}  // namespace

std::string host_problem() { return ""; }

std::string host_text(const PlaceOptions& options) {
  return fmt::format("cpu: {}, {} thread{}", cpu_model(), options.threads,
                     options.threads == 1 ? "" : "s");
}

std::string host_remark(const Recipe&) { return ""; }

void check_host_place(const Recipe&, const Task&) {}

std::unique_ptr<Place> make_serial_place(const Recipe& recipe, Task& task, SiteStore& home,
                                         const PlaceOptions&) {
  return std::make_unique<HostPlace>(recipe, task, home, 1);
}

std::unique_ptr<Place> make_threads_place(const Recipe& recipe, Task& task, SiteStore& home,
                                          const PlaceOptions& options) {
  return std::make_unique<HostPlace>(recipe, task, home, options.threads);
}

}  // namespace fedep
