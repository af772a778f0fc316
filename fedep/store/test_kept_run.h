// A run that a keeper keeps, without a model: three rounds of FedAvg and four of FedEP whose states
// depend on seed and round alone.
//
//   KeptTestRun run(folder / "run", {"seed=2"});
//   run.play_until(5);
//   KeptTestRun(folder / "run", {"seed=2"}).resume_until(7);
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fedep/config/read_recipe.h"
#include "fedep/round/run.h"
#include "fedep/round/server_average.h"
#include "fedep/store/run_keeper.h"
#include "fedep/store/site_files.h"

namespace fedep {

class KeptTestRun {
 public:
  explicit KeptTestRun(std::filesystem::path path, const std::vector<std::string>& overrides = {})
      : path_(std::move(path)),
        recipe_(parse_recipe(kRecipe, "recipe", overrides)),
        phases_(plan_phases(recipe_, [](std::string_view) { return Family::diagonal; })) {}

  // Both give the round that they began with.
  std::int64_t play_until(std::int64_t round) {
    return play(RunDirectory::create(path_, recipe_), false, round);
  }
  std::int64_t resume_until(std::int64_t round) {
    return play(RunDirectory::reopen(path_, recipe_), true, round);
  }

  std::filesystem::path checkpoint(std::int64_t round) const {
    return path_ / ("checkpoint-" + std::to_string(round) + ".safetensors");
  }
  const std::filesystem::path& path() const { return path_; }
  const Recipe& recipe() const { return recipe_; }
  const std::vector<Phase>& phases() const { return phases_; }
  const Layout& layout() const { return layout_; }
  const std::vector<std::string>& told() const { return told_; }
  static std::uint64_t client_of(std::int64_t round) { return std::uint64_t(1 + round % 2); }

 private:
  static constexpr const char* kRecipe = R"(
[data]
name = "toy"
[server]
optimizer = { name = "sgd", lr = 0.5, momentum = 0.5 }
[[phase]]
algorithm = "fed_avg"
rounds = 3
[[phase]]
algorithm = "fed_ep"
rounds = 4
[phase.inference]
name = "exact"
[checkpoint]
every = 1
)";

  Message message_of_round(std::int64_t round) const {
    return {HostVector<float>{float(recipe_.seed), float(round), 0.5f},
            HostVector<float>{1, 2, float(1 + round)}};
  }

  ServerState state_after(std::int64_t round) const {
    ServerState state = initial_server_state(recipe_.server, {1.0f, -2.0f, 0.1f});
    state.round = round;
    state.phase = std::int64_t(phase_of(phases_, round - 1));
    state.global = message_of_round(round);
    state.optimizer = {.steps = round, .slots = {message_of_round(round)}};
    const std::int64_t averaged = rounds_in_average(phases_[std::size_t(state.phase)], round);
    if (averaged > 0) {
      state.average = {.rounds = averaged,
                       .mean = state.global.eta(),
                       .variance = state.global.eta(),
                       .lambda = state.global.eta()};
    }
    return state;
  }

  std::int64_t play(const RunDirectory& directory, bool resume, std::int64_t until) {
    const auto sites = make_memory_store(std::make_unique<SiteFiles>(directory.sites()));
    DiskKeeper keeper({recipe_, phases_, layout_, *sites, directory,
                       [this](std::string_view line) { told_.emplace_back(line); }},
                      {.seed = recipe_.seed, .clients = 2, .data = "d"}, resume);
    const std::optional<ServerState> begun = keeper.begin();
    const std::int64_t first = begun ? begun->round : 0;
    const std::int64_t rounds = phases_.back().end_round();
    for (std::int64_t round = first; round < until; ++round) {
      const Phase& phase = phases_[phase_of(phases_, round)];
      if (round == phase.first_round) sites->clear();
      if (phase.stateful()) {
        const std::vector<std::uint64_t> taken{client_of(round)};
        sites->propose(taken[0], round, {message_of_round(round), {}});
        sites->settle(round, taken);
      }
      RoundNumbers numbers{.asked = 1, .answered = 1, .steps = 1};
      numbers.loss_sum = double(recipe_.seed) + 0.1 * double(round);
      keeper.write({round, rounds, phase.algorithm->name, numbers, 0.5, {}});
      const bool stop = round + 1 == until;
      if (keeper.wants(round + 1, phase, stop)) keeper.keep(state_after(round + 1), phase, stop);
    }
    if (until == rounds) keeper.end(state_after(rounds), 1);
    return first;
  }

  std::filesystem::path path_;
  Recipe recipe_;
  std::vector<Phase> phases_;
  Layout layout_{{"weight", {3}}};
  std::vector<std::string> told_;
};

}  // namespace fedep
