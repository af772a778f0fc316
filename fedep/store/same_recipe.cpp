#include "fedep/store/same_recipe.h"

#include <algorithm>
#include <sstream>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "fedep/config/resolve.h"
#include "fedep/config/write_recipe.h"

namespace fedep {
namespace {

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
  a.stop = b.stop;
  // No round depends on it.
  for (std::size_t i = 0; i < a.phases.size(); ++i) a.phases[i].curvature = b.phases[i].curvature;
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
  now.stop = there.stop;
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

}  // namespace

std::optional<std::string> recipe_difference(const Recipe& there, const Recipe& now) {
  if (one_continues_the_other(filled_in(there), filled_in(now))) return std::nullopt;
  return first_difference(there, now);
}

}  // namespace fedep
