// Runs made up for tests of the page: logs whose values are known, and the directories they leave.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "fedep/config/read_recipe.h"
#include "fedep/config/write_recipe.h"
#include "fedep/message/test_folder.h"
#include "fedep/page/report/run_record.h"
#include "fedep/store/log/log_lines.h"

namespace fedep {

inline constexpr std::string_view kTestRecipe = R"(
seed = 7
[data]
name = "synthetic"
clients = 6
[server]
clients_per_round = 3
[[phase]]
algorithm = "fed_avg"
rounds = 2
[[phase]]
algorithm = "fed_ep"
rounds = 4
[phase.inference]
name = "laplace"
)";

inline RoundRecord test_round(std::int64_t round, double accuracy) {
  return record_of(
      round, round < 2 ? "fed_avg" : "fed_ep",
      {.asked = 3, .answered = 3, .steps = 10, .loss_sum = 5, .bytes_up = 100, .bytes_down = 50},
      0.25, {{"accuracy", accuracy}});
}

// A finished run of six rounds; its accuracy after round i + 1 is `accuracy(i)`.
inline RunRecord test_run(std::string name, std::uint64_t seed,
                          const std::function<double(std::int64_t)>& accuracy,
                          const std::vector<std::string>& overrides = {}) {
  RunRecord run;
  run.name = std::move(name);
  run.recipe = parse_recipe(kTestRecipe, "recipe", overrides);
  run.recipe.seed = seed;
  run.history.header = RunHeader{.clients = 6};
  for (std::int64_t i = 0; i < 6; ++i) run.history.rounds.push_back(test_round(i, accuracy(i)));
  run.status = RunStatus::finished;
  return run;
}

// A score of a round made another, or added.
inline void set_score(RoundRecord& round, std::string_view name, double value) {
  const auto found = std::ranges::find(round.scores, name, &Metrics::value_type::first);
  if (found != round.scores.end()) {
    found->second = value;
  } else {
    round.scores.emplace_back(name, value);
  }
}

// A run directory with the recipe and a log of so many rounds, ended or not.
inline std::filesystem::path write_run(const TemporaryFolder& folder, const std::string& name,
                                       std::int64_t rounds, bool ended) {
  folder.write(name + "/recipe.toml", to_toml(parse_recipe(kTestRecipe)));
  std::string log = "{\"kind\":\"run\",\"clients\":6}\n";
  for (std::int64_t i = 0; i < rounds; ++i) log += line_of(test_round(i, 0.5)) + "\n";
  if (ended) log += fmt::format("{{\"kind\":\"end\",\"rounds\":{}}}\n", rounds);
  return folder.write(name + "/log.jsonl", log).parent_path();
}

}  // namespace fedep
