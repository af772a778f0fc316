#include "fedep/store/run_directory.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

#include "fedep/config/read_recipe.h"
#include "fedep/config/write_recipe.h"
#include "fedep/message/check.h"
#include "fedep/store/durable_file.h"
#include "fedep/store/history.h"

namespace fedep {
namespace {

constexpr std::string_view kPrefix = "checkpoint-";
constexpr std::string_view kSuffix = ".safetensors";

std::int64_t rounds_of(const Recipe& recipe) {
  std::int64_t rounds = 0;
  for (const PhaseSettings& phase : recipe.phases) rounds += phase.rounds;
  return rounds;
}

// Whether two recipes play the same rounds the same way, as far as the shorter one goes.
bool one_continues_the_other(Recipe a, Recipe b) {
  if (a.phases.size() > b.phases.size()) std::swap(a, b);
  if (!a.phases.empty()) {
    PhaseSettings& last = a.phases.back();
    const PhaseSettings& same = b.phases[a.phases.size() - 1];
    if (a.phases.size() < b.phases.size() && last.rounds > same.rounds) return false;
    last.rounds = same.rounds;
  }
  b.phases.resize(a.phases.size());
  a.evaluate = b.evaluate;
  a.checkpoint = b.checkpoint;
  return a == b;
}

std::vector<std::string> lines_of(const Recipe& recipe) {
  std::vector<std::string> lines;
  std::istringstream text(to_toml(recipe));
  std::string section;
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with('[')) {
      section = line + " ";
    } else if (!line.empty()) {
      lines.push_back(section + line);
    }
  }
  return lines;
}

// "[client] epochs = 5 there, and now [client] epochs = 3". The last phase may get more rounds, so
// its number counts only if nothing else differs.
std::string first_difference(const Recipe& there, Recipe now) {
  now.evaluate = there.evaluate;
  now.checkpoint = there.checkpoint;
  const std::vector<std::string> a = lines_of(there);
  const auto difference = [&](const Recipe& other) -> std::optional<std::string> {
    const std::vector<std::string> b = lines_of(other);
    const auto [in_a, in_b] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
    if (in_a == a.end() && in_b == b.end()) return std::nullopt;
    return fmt::format("{} there, and now {}", in_a == a.end() ? "nothing more" : *in_a,
                       in_b == b.end() ? "nothing more" : *in_b);
  };
  Recipe extended = now;
  const std::size_t last = std::min(there.phases.size(), now.phases.size()) - 1;
  extended.phases[last].rounds = there.phases[last].rounds;
  return difference(extended).value_or(difference(now).value_or("rounds"));
}

// Whether the log says that all of these rounds were played.
bool is_over(const std::filesystem::path& log, std::int64_t rounds) {
  if (!std::filesystem::exists(log)) return false;
  const History history = read_history(log);
  return history.end && history.end->rounds == rounds;
}

std::filesystem::path recipe_path(const std::filesystem::path& run) { return run / "recipe.toml"; }

void write_recipe(const std::filesystem::path& run, const Recipe& recipe) {
  const std::string text = to_toml(recipe);
  replace_file(recipe_path(run), std::as_bytes(std::span(text)));
}

}  // namespace

RunDirectory RunDirectory::create(const std::filesystem::path& path, const Recipe& recipe) {
  if (std::filesystem::exists(recipe_path(path))) {
    throw InputError(
        fmt::format("{}: directory must not hold a run yet, but does; resume it with --resume or "
                    "name another with --out",
                    path.string()));
  }
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) {
    throw RunError(fmt::format("{}: cannot make directory: {}", path.string(), error.message()));
  }
  write_recipe(path, recipe);
  return RunDirectory(path);
}

RunDirectory RunDirectory::reopen(const std::filesystem::path& path, const Recipe& recipe) {
  if (!std::filesystem::exists(recipe_path(path))) {
    throw InputError(fmt::format("{}: directory must hold a run to resume, but has no recipe.toml",
                                 path.string()));
  }
  const Recipe there = read_recipe(recipe_path(path));
  if (!one_continues_the_other(there, recipe)) {
    throw InputError(fmt::format("{}: recipe to resume must be the run's own, but differs: {}",
                                 path.string(), first_difference(there, recipe)));
  }
  const RunDirectory run(path);
  const std::vector<std::int64_t> played = run.checkpoints();
  if (!played.empty() && played.back() > rounds_of(recipe)) {
    throw InputError(
        fmt::format("{}: run to resume must have at most {} rounds, the recipe's, but has {}",
                    path.string(), rounds_of(recipe), played.back()));
  }
  if (played.empty() && is_over(run.log(), rounds_of(recipe))) {
    throw InputError(
        fmt::format("{}: run to resume is over and must still have {}, but has no checkpoint; play "
                    "it again with another --out",
                    path.string(), run.checkpoint(rounds_of(recipe)).filename().string()));
  }
  write_recipe(path, recipe);
  return run;
}

std::filesystem::path RunDirectory::checkpoint(std::int64_t round) const {
  return path_ / fmt::format("{}{}{}", kPrefix, round, kSuffix);
}

std::vector<std::int64_t> RunDirectory::checkpoints() const {
  std::vector<std::int64_t> rounds;
  for (const auto& entry : std::filesystem::directory_iterator(path_)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) continue;
    const char* begin = name.data() + kPrefix.size();
    const char* end = name.data() + name.size() - kSuffix.size();
    std::int64_t round = 0;
    const auto [stopped, failure] = std::from_chars(begin, end, round);
    if (failure == std::errc() && stopped == end) rounds.push_back(round);
  }
  std::sort(rounds.begin(), rounds.end());
  return rounds;
}

void RunDirectory::remove_checkpoint(std::int64_t round) const {
  std::error_code ignored;  // a file left behind costs space, not correctness
  std::filesystem::remove(checkpoint(round), ignored);
}

}  // namespace fedep
