// A place in main memory: rounds are played with any executor, and a function scores states.
//
//   ExecutorPlace place(recipe.seed, population, *executor, *sites, [&](const ServerState& state, bool) { … });
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "fedep/round/executor.h"
#include "fedep/round/place.h"

namespace fedep {

class ExecutorPlace final : public Place {
 public:
  using Evaluate = std::function<Metrics(const ServerState&, bool last)>;

  // What is referred to must outlive this. Without `evaluate` there are no scores.
  ExecutorPlace(std::uint64_t seed, const Population& population, Executor& executor,
                SiteStore& sites, Evaluate evaluate = {})
      : seed_(seed),
        population_(population),
        executor_(executor),
        sites_(sites),
        evaluate_(std::move(evaluate)) {}

  SiteStore& sites() override { return sites_; }
  RoundNumbers play(ServerState& state, const Phase& phase) override {
    return play_round(state, phase, seed_, population_, executor_);
  }
  void bring_home(ServerState&) override {}
  Metrics evaluate(const ServerState& state, bool last) override {
    return evaluate_ ? evaluate_(state, last) : Metrics{};
  }

 private:
  std::uint64_t seed_;
  const Population& population_;
  Executor& executor_;
  SiteStore& sites_;
  Evaluate evaluate_;
};

}  // namespace fedep
