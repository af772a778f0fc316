#include "fedep/store/run_directory.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "fedep/config/read_recipe.h"
#include "fedep/config/write_recipe.h"
#include "fedep/message/check.h"
#include "fedep/store/durable_file.h"
#include "fedep/store/log/history.h"
#include "fedep/store/same_recipe.h"
#include "fedep/store/verdict.h"

namespace fedep {
namespace {

constexpr std::string_view kPrefix = "checkpoint-";
constexpr std::string_view kSuffix = ".safetensors";

std::int64_t rounds_of(const Recipe& recipe) {
  std::int64_t rounds = 0;
  for (const PhaseSettings& phase : recipe.phases) rounds += phase.rounds;
  return rounds;
}

// As far as it can be read: what a power cut left behind a checkpoint's rounds does not matter.
History history_in(const std::filesystem::path& log) {
  return std::filesystem::exists(log) ? read_history_so_far(log).history : History{};
}

// What a run has left in a directory; nothing if there is none.
std::string first_trace(const RunDirectory& run, const std::filesystem::path& recipe) {
  for (const std::filesystem::path& file : {recipe, run.log()}) {
    if (std::filesystem::exists(file)) return file.filename().string();
  }
  const std::vector<std::int64_t> rounds = run.checkpoints();
  return rounds.empty() ? "" : run.checkpoint(rounds.back()).filename().string();
}

std::filesystem::path recipe_path(const std::filesystem::path& run) { return run / "recipe.toml"; }

void write_recipe(const std::filesystem::path& run, const Recipe& recipe) {
  const std::string text = to_toml(recipe);
  replace_file(recipe_path(run), std::as_bytes(std::span(text)));
}

}  // namespace

RunDirectory RunDirectory::create(const std::filesystem::path& path, const Recipe& recipe) {
  make_folder(path);
  const RunDirectory run(path);
  const std::string trace = first_trace(run, recipe_path(path));
  if (trace == "recipe.toml") {
    throw InputError(
        fmt::format("{}: directory must not hold a run yet, but does; resume it with --resume or "
                    "name another with --out",
                    path.string()));
  }
  if (!trace.empty()) {
    throw InputError(fmt::format(
        "{}: directory must not hold a run yet, but has {}, without a recipe.toml; name another "
        "with --out",
        path.string(), trace));
  }
  write_recipe(path, recipe);
  return run;
}

RunDirectory RunDirectory::reopen(const std::filesystem::path& path, const Recipe& recipe,
                                  std::string_view data) {
  if (!std::filesystem::exists(recipe_path(path))) {
    throw InputError(fmt::format("{}: directory must hold a run to resume, but has no recipe.toml",
                                 path.string()));
  }
  const Recipe there = read_recipe(recipe_path(path));
  if (const auto differs = recipe_difference(there, recipe)) {
    throw InputError(fmt::format("{}: recipe to resume must be the run's own, but differs: {}",
                                 path.string(), *differs));
  }
  const RunDirectory run(path);
  const History history = history_in(run.log());
  const std::string before = history.header ? history.header->data : "";
  if (!data.empty() && !before.empty() && before != data) {
    throw InputError(
        fmt::format("{}: data must be those that the run began with, {}, but are {}: they were "
                    "changed since, or --data names others",
                    path.string(), before, data));
  }
  const std::vector<std::int64_t> played = run.checkpoints();
  if (!played.empty() && played.back() > rounds_of(recipe)) {
    throw InputError(
        fmt::format("{}: run to resume must have at most {} rounds, the recipe's, but has {}",
                    path.string(), rounds_of(recipe), played.back()));
  }
  if (played.empty() && is_finished(recipe, history)) {
    throw InputError(
        fmt::format("{}: run to resume is over and must still have {}, but has no checkpoint; play "
                    "it again with another --out",
                    path.string(), run.checkpoint(history.end->rounds).filename().string()));
  }
  Recipe kept = recipe;
  if (is_finished(recipe, history)) kept.evaluate = there.evaluate;  // what its scores are of
  write_recipe(path, kept);
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
