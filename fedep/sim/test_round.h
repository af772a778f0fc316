// A round about to be played, for tests that look into its visits.
//
//   TestRound round("fed_sep", {.name = "laplace"}, from_mean(mean, 4.0f));
//   const Visit visit = round.visit(client, cavity);
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "fedep/round/host_rows.h"

namespace fedep {

class TestRound {
 public:
  TestRound(std::string_view algorithm, const InferenceSettings& inference, Message global)
      : global_(std::move(global)), mean_(fedep::mean(global_)) {
    phase.algorithm = &find_algorithm(algorithm);
    phase.family = global_.family();
    phase.cavity = phase.algorithm->cavity;
    phase.weight = phase.algorithm->weight;
    phase.inference = inference;
  }
  TestRound(const TestRound&) = delete;
  TestRound& operator=(const TestRound&) = delete;

  const RoundTask& task() const { return task_; }
  RoundTask& task() { return task_; }
  Visit visit(const ClientInfo& client, Message cavity) const {
    return {task_, client, std::move(cavity)};
  }

  Phase phase;  // open to change before the first visit
  UnvisitedFactor unvisited;

 private:
  Message global_;
  Message prior_{HostVector<float>(global_.size()), 0.0f};
  HostVector<float> mean_;
  RoundTask task_{
      .seed = 3,
      .round = 7,
      .phase = phase,
      .prior = prior_,
      .global = global_,
      .mean = mean_,
      .unvisited = unvisited,
      .damping = 1,
      .grid = choose_grid({}, {.clip = 0, .scale = 1, .asked = 8, .bits = 64}, global_)};
};

// Everybody in the data set, as a run knows them.
inline std::vector<ClientInfo> clients_of(
    const std::vector<std::pair<std::string, std::size_t>>& ids) {
  const Population population = make_population(ids);
  std::vector<ClientInfo> clients;
  for (std::size_t k = 0; k < population.size(); ++k) clients.push_back(population[k]);
  return clients;
}

}  // namespace fedep
