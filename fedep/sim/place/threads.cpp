#include "fedep/sim/place/threads.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "fedep/message/check.h"

namespace fedep {
namespace {

constexpr std::chrono::milliseconds kNowAndThen{1};

class Threads final : public CollectingExecutor {
 public:
  Threads(const Population& population,
          const std::function<std::unique_ptr<LocalInference>()>& make_inference, SiteStore* sites,
          std::size_t workers)
      : population_(population), sites_(sites) {
    check_positive("make_threads", "number of workers", double(workers));
    for (std::size_t i = 0; i < workers; ++i) inference_.push_back(make_inference());
  }

  void play_into(Collector& answers, const RoundTask& round, std::span<const ClientTask> clients,
                 const std::function<void()>& meanwhile) override {
    std::atomic<std::size_t> next = 0;
    std::mutex mutex;  // guards answers, failure and working
    std::condition_variable finished;
    std::exception_ptr failure;
    std::size_t working = inference_.size();
    std::size_t failed_task = clients.size();
    const auto work = [&](LocalInference& inference) {
      for (std::size_t i = next++; i < clients.size(); i = next++) {
        try {
          Report report =
              play_visit(round, clients[i], population_[clients[i].client], sites_, inference);
          const std::lock_guard lock(mutex);
          answers.add(std::move(report));
        } catch (...) {
          const std::lock_guard lock(mutex);
          // The first in client order is the one that serial would have thrown.
          if (i < failed_task) {
            failed_task = i;
            failure = std::current_exception();
          }
          next = clients.size();
        }
      }
      const std::lock_guard lock(mutex);
      if (--working == 0) finished.notify_one();
    };
    {
      std::vector<std::jthread> workers;
      for (const auto& inference : inference_) {
        workers.emplace_back([&work, &inference] { work(*inference); });
      }
      while (meanwhile) {
        meanwhile();
        std::unique_lock lock(mutex);
        if (finished.wait_for(lock, kNowAndThen, [&] { return working == 0; })) break;
      }
    }
    if (failure) std::rethrow_exception(failure);
  }

  void settle(const RoundTask& round, std::span<const std::size_t> taken,
              const StepPart& part) override {
    if (!round.phase.stateful()) return;
    settle_visits(round, population_, taken, part, *sites_);
    if (!taken.empty()) keep_mean(round, *sites_);
  }

 private:
  const Population& population_;
  SiteStore* sites_;
  std::vector<std::unique_ptr<LocalInference>> inference_;  // one per worker
};

}  // namespace

std::unique_ptr<CollectingExecutor> make_threads(
    const Population& population,
    const std::function<std::unique_ptr<LocalInference>()>& make_inference, SiteStore* sites,
    std::size_t workers) {
  return std::make_unique<Threads>(population, make_inference, sites, workers);
}

}  // namespace fedep
