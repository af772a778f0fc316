#include "fedep/page/report/run_record.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <ctime>
#include <string_view>
#include <utility>

#include <fmt/chrono.h>

#include "fedep/algorithm/algorithm.h"
#include "fedep/config/read_recipe.h"
#include "fedep/message/check.h"
#include "fedep/message/parse_json.h"
#include "fedep/page/report/curved_checkpoint.h"
#include "fedep/store/curvature_file.h"
#include "fedep/store/durable_file.h"

namespace fedep {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  const std::vector<std::byte> bytes = read_file(path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool is_fresh(const fs::path& log, const std::vector<RoundRecord>& rounds) {
  std::error_code error;
  const auto written = fs::last_write_time(log, error);
  if (error) return false;
  double longest = 20;
  for (const RoundRecord& round : rounds) longest = std::max(longest, round.seconds);
  const auto age = fs::file_time_type::clock::now() - written;
  return std::chrono::duration<double>(age).count() < 3 * longest;
}

fs::path latest_checkpoint(const fs::path& run, std::int64_t& latest) {
  constexpr std::string_view kPrefix = "checkpoint-", kSuffix = ".safetensors";
  latest = -1;
  fs::path found;
  for (const auto& entry : fs::directory_iterator(run)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) continue;
    const char* end = name.data() + name.size() - kSuffix.size();
    std::int64_t round = 0;
    const auto [stopped, failure] = std::from_chars(name.data() + kPrefix.size(), end, round);
    if (failure != std::errc() || stopped != end || round <= latest) continue;
    latest = round;
    found = entry.path();
  }
  return found;
}

bool infers_posterior(const Recipe& recipe, std::int64_t round) {
  for (const PhaseSettings& phase : recipe.phases) {
    round -= phase.rounds;
    if (round <= 0) return !find_algorithm(phase.algorithm).point_estimate;
  }
  return false;
}

fs::path without_last_slash(const fs::path& path) {
  const fs::path normal = path.lexically_normal();
  return normal.has_filename() ? normal : normal.parent_path();
}

}  // namespace

std::string date_of(const fs::path& file) {
  const auto time = std::chrono::file_clock::to_sys(fs::last_write_time(file));
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch());
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time_t(seconds.count())));
}

std::vector<std::int64_t> switches_in(const Recipe& recipe) {
  std::vector<std::int64_t> rounds;
  std::int64_t end = 0;
  for (const PhaseSettings& phase : recipe.phases) rounds.push_back(end += phase.rounds);
  if (!rounds.empty()) rounds.pop_back();  // where the run ends
  return rounds;
}

std::int64_t rounds_in(const Recipe& recipe) {
  std::int64_t rounds = 0;
  for (const PhaseSettings& phase : recipe.phases) rounds += phase.rounds;
  return rounds;
}

std::optional<PosteriorSpread> read_posterior(const fs::path& run, const Recipe& recipe,
                                              std::uintmax_t largest_checkpoint) {
  std::int64_t round = 0;
  const fs::path checkpoint = latest_checkpoint(run, round);
  if (checkpoint.empty() || !infers_posterior(recipe, round)) return std::nullopt;
  std::error_code error;
  if (fs::file_size(checkpoint, error) > largest_checkpoint || error) return std::nullopt;
  SafetensorsFile file = read_safetensors(checkpoint);
  if (const fs::path curved = curvature_path(run); fs::exists(curved, error)) {
    const KeptCurvature kept = read_curvature(curved);
    if (kept.curvature.round == round) {
      check_own_curvature(curved, kept, checkpoint);
      file = with_curvature(std::move(file), kept.curvature);
    }
  }
  return posterior_spread(file);
}

Json read_evaluation(const fs::path& run) {
  const fs::path file = run / "evaluation.json";
  if (!fs::exists(file)) return nullptr;
  Json evaluation = find_json(text_of(file)).value_or(nullptr);
  if (!evaluation.is_object()) throw InputError("evaluation.json: expected a JSON object");
  return evaluation;
}

RunRecord read_run_record(const fs::path& path, std::string name,
                          std::uintmax_t largest_checkpoint) {
  if (!fs::is_directory(path)) {
    throw InputError(fmt::format("{}: must be a run directory, but is {}", path.string(),
                                 fs::exists(path) ? "a file" : "not there"));
  }
  if (!fs::exists(path / "recipe.toml")) {
    throw InputError(
        fmt::format("{}: must be a run directory, but has no recipe.toml", path.string()));
  }
  RunRecord run;
  run.name = name.empty() ? without_last_slash(path).filename().string() : std::move(name);
  run.recipe = read_recipe(path / "recipe.toml");
  const fs::path log = path / "log.jsonl";
  if (fs::exists(log)) {
    HistorySoFar read = read_history_so_far(log);
    run.history = std::move(read.history);
    if (!read.fault.empty()) run.faults.push_back(std::move(read.fault));
    run.date = date_of(log);
  } else {
    run.faults.push_back("log.jsonl is not there: the run has not begun");
  }
  const std::vector<RoundRecord>& rounds = run.history.rounds;
  if (is_finished(run.recipe, run.history)) {
    run.status = RunStatus::finished;
    run.verdict = verdict_of(run.recipe, run.history);
  } else if (is_fresh(log, rounds)) {
    run.status = RunStatus::running;
  }
  // A part that cannot be read is left out; the rest of the run is still worth showing.
  try {
    run.evaluation = read_evaluation(path);
  } catch (const InputError& error) {
    run.faults.push_back(error.what());
  }
  try {
    run.posterior = read_posterior(path, run.recipe, largest_checkpoint);
  } catch (const InputError& error) {
    run.faults.push_back(error.what());
  }
  return run;
}

std::vector<std::string> names_of(const std::vector<fs::path>& runs) {
  std::vector<fs::path> paths;
  for (const fs::path& run : runs) {
    const fs::path path = without_last_slash(run);
    // "." and ".." have no name of their own.
    paths.push_back(path.filename().string().starts_with(".") ? fs::weakly_canonical(run) : path);
  }
  std::vector<std::string> names(paths.size());
  for (std::size_t i = 0; i < paths.size(); ++i) {
    fs::path rest = paths[i].parent_path();
    names[i] = paths[i].filename().string();
    // Is there another that ends the same way?
    const auto same_end = [&](const std::string& name) {
      return std::count_if(paths.begin(), paths.end(), [&](const fs::path& other) {
               const std::string text = other.generic_string();
               return text == name || text.ends_with("/" + name);
             }) > 1;
    };
    while (same_end(names[i]) && rest.has_filename()) {
      names[i] = rest.filename().string() + "/" + names[i];
      rest = rest.parent_path();
    }
  }
  return names;
}

}  // namespace fedep
