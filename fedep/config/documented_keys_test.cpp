// docs/recipe.md has a row for every key of fields.h, and none for a key that is not there; it says
// of every number what fields.h lets it be.
#include <fstream>
#include <map>
#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "fedep/config/fields.h"

namespace fedep {
namespace {

using Keys = std::map<std::string, std::string>;  // to a text

// Every key with its tables in front, of optional sections too: phase.inference.alpha; with what
// its number may be.
class KeyCollector {
 public:
  explicit KeyCollector(std::string prefix = "") : prefix_(std::move(prefix)) {}

  template <class T, class... Rest>
  void operator()(std::string_view name, T&, Rest&&... rest) {
    std::string range;
    if constexpr ((std::is_same_v<std::decay_t<Rest>, Rule> || ...)) {
      range = (range_text(rest), ...);
    }
    keys_.emplace(prefix_ + std::string(name), range);
  }
  template <Section S>
  void operator()(std::string_view name, S& section) {
    enter(name, section);
  }
  template <Section S, class... Rest>
  void operator()(std::string_view name, std::optional<S>&, Rest&&...) {
    S section;
    enter(name, section);
  }
  template <Section S>
  void operator()(std::string_view name, std::vector<S>&) {
    S section;
    enter(name, section);
  }

  const Keys& keys() const { return keys_; }

 private:
  template <Section S>
  void enter(std::string_view name, S& section) {
    KeyCollector inside(prefix_ + std::string(name) + ".");
    list_fields(inside, section);
    keys_.emplace(prefix_ + std::string(name), "");
    keys_.insert(inside.keys_.begin(), inside.keys_.end());
  }

  std::string prefix_;
  Keys keys_;
};

std::vector<std::string> found(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  std::vector<std::string> matches;
  for (auto it = std::sregex_iterator(text.begin(), text.end(), regex);
       it != std::sregex_iterator(); ++it) {
    matches.push_back((*it)[1]);
  }
  return matches;
}

constexpr const char* kSection = R"(^## `\[+([a-z_.]+)\]+`$)";

// What the keys below a heading have in front.
std::vector<std::string> prefixes_of(const std::string& heading) {
  if (heading == "## The top") return {""};
  if (heading == "## Optimizers") {
    return {"client.optimizer.", "server.optimizer.", "server.factor_optimizer.",
            "phase.optimizer."};
  }
  const std::vector<std::string> section = found(heading, kSection);
  return section.empty() ? section : std::vector{section[0] + "."};
}

// | `key`, `other` | values, or `{ inside = …, … }` | default | meaning |, to the row.
Keys documented() {
  Keys keys;
  std::vector<std::string> prefixes;
  std::ifstream page(FEDEP_RECIPE_PAGE);
  EXPECT_TRUE(page) << FEDEP_RECIPE_PAGE;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("## ")) {
      prefixes = prefixes_of(line);
      for (const std::string& section : found(line, kSection)) keys.emplace(section, line);
    }
    std::smatch cells;
    static const std::regex kRow(R"(^\| (`[^|]*`) \| ([^|]*) \|.*)");
    if (prefixes.empty() || !std::regex_match(line, cells, kRow)) continue;
    for (const std::string& prefix : prefixes) {
      for (const std::string& key : found(cells[1], "`([a-z_0-9]+)`")) {
        keys.emplace(prefix + key, line);
        for (const std::string& inside : found(cells[2], R"([{,] ([a-z_]+) = )")) {
          keys.emplace(prefix + key + "." + inside, line);
        }
      }
    }
  }
  return keys;
}

TEST(DocumentedKeys, AreThoseThatThereAre) {
  KeyCollector collector;
  Recipe recipe;
  list_fields(collector, recipe);
  const Keys there = collector.keys(), written = documented();
  for (const auto& [key, row] : written) {
    EXPECT_TRUE(there.contains(key)) << "docs/recipe.md has " << key << ", which is not a setting";
  }
  for (const auto& [key, range] : there) {
    EXPECT_TRUE(written.contains(key)) << "docs/recipe.md has no row for " << key;
  }
  EXPECT_GT(there.size(), 100u);
}

TEST(DocumentedKeys, SayWhatTheirNumbersMayBe) {
  KeyCollector collector;
  Recipe recipe;
  list_fields(collector, recipe);
  const Keys written = documented();
  std::size_t with_a_range = 0;
  for (const auto& [key, range] : collector.keys()) {
    if (range.empty() || !written.contains(key)) continue;
    ++with_a_range;
    EXPECT_NE(written.at(key).find(range), std::string::npos)
        << "docs/recipe.md does not say that " << key << " is " << range;
  }
  EXPECT_GT(with_a_range, 60u);
}

}  // namespace
}  // namespace fedep
