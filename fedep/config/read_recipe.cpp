#include "fedep/config/read_recipe.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fedep/config/comma_list.h"
#include "fedep/config/extend.h"
#include "fedep/config/fields.h"
#include "fedep/config/override.h"
#include "fedep/config/resolve.h"
#include "fedep/message/error.h"
#include "fedep/message/nearest.h"

namespace fedep {
namespace {

// "drop or keep", "count, back_off, floor or skip".
std::string listed(const std::vector<std::string_view>& words) {
  if (words.size() == 1) return std::string(words[0]);
  return fmt::format("{} or {}", fmt::join(words.begin(), words.end() - 1, ", "), words.back());
}

template <Worded E>
std::vector<std::string_view> words_of_all(E e) {
  std::vector<std::string_view> words;
  for (const auto& word : words_of(e)) words.push_back(word.word);
  return words;
}

// Reads one table into one section; `prefix` is the table's path with a dot behind it.
class Reader {
 public:
  Reader(const toml::table& table, std::string prefix, const std::string& source)
      : table_(table), prefix_(std::move(prefix)), source_(source) {}

  // A misspelt key is reported before the setting it leaves missing.
  template <Section S>
  static void read(const toml::table& table, std::string prefix, const std::string& source,
                   S& section) {
    Reader reader(table, std::move(prefix), source);
    reader.refuse_unknown(names_of<S>());
    list_fields(reader, section);
  }

  void operator()(std::string_view name, bool& value) const {
    const toml::node* node = find(name);
    if (!node) return;
    if (!node->is_boolean()) refuse(*node, name, "true or false");
    value = **node->as_boolean();
  }
  void operator()(std::string_view name, std::optional<bool>& value) const {
    if (find(name)) (*this)(name, value.emplace());
  }

  void operator()(std::string_view name, int& value, const Rule& rule) const {
    const auto number = integer(name, rule);
    if (!number) return;
    if (*number > std::numeric_limits<int>::max()) {
      refuse(*find(name), name, fmt::format("at most {}", std::numeric_limits<int>::max()));
    }
    value = static_cast<int>(*number);
  }

  void operator()(std::string_view name, std::uint64_t& value, const Rule& rule) const {
    if (const auto number = integer(name, rule)) value = static_cast<std::uint64_t>(*number);
  }

  void operator()(std::string_view name, std::optional<std::uint64_t>& value,
                  const Rule& rule) const {
    if (const auto number = integer(name, rule)) value = static_cast<std::uint64_t>(*number);
  }

  void operator()(std::string_view name, double& value, const Rule& rule = {}) const {
    const toml::node* node = find(name, rule);
    if (!node) return;
    if (!node->is_number()) refuse(*node, name, "a number");
    // An integer that no double is equal to is the nearest double.
    value = node->is_integer() ? double(**node->as_integer()) : **node->as_floating_point();
    if (const auto expected = broken(rule, value)) refuse(*node, name, *expected);
  }

  void operator()(std::string_view name, std::string& value, const Rule& rule = {}) const {
    const toml::node* node = find(name, rule);
    if (!node) return;
    if (!node->is_string()) refuse(*node, name, "a string");
    value = **node->as_string();
    if (rule.needed && value.empty()) refuse(*node, name, "a name");
    if (!rule.known) return;
    try {
      rule.known(value);
    } catch (const InputError& error) {
      throw InputError(fmt::format("{}: {}", place(*node, source_), error.what()));
    }
  }

  void operator()(std::string_view name, std::vector<std::string>& items) const {
    const toml::node* node = find(name);
    if (!node) return;
    if (node->is_string()) {
      const std::string& text = **node->as_string();
      items = comma_list(text);
      if (items.empty() && !text.empty()) refuse(*node, name, "names between commas, or empty");
      return;
    }
    if (!node->is_array()) refuse(*node, name, "a string or an array of strings");
    items.clear();
    for (const toml::node& item : *node->as_array()) {
      if (!item.is_string()) refuse(item, fmt::format("{}.{}", name, items.size()), "a string");
      items.push_back(**item.as_string());
    }
  }

  // Names, and numbers as the rule has them.
  void operator()(std::string_view name, std::vector<std::string>& items, const Rule& rule) const {
    const toml::node* node = find(name);
    if (!node || node->is_string()) return (*this)(name, items);
    if (!node->is_array()) {
      items = {name_or_number(*node, name, rule)};
      return;
    }
    items.clear();
    for (const toml::node& item : *node->as_array()) {
      items.push_back(name_or_number(item, fmt::format("{}.{}", name, items.size()), rule));
    }
  }

  void operator()(std::string_view name, std::optional<double>& value, const Rule& rule) const {
    if (find(name)) (*this)(name, value.emplace(), rule);
  }

  template <Worded E>
  void operator()(std::string_view name, E& value) const {
    const toml::node* node = find(name);
    if (node) value = word<E>(*node, name, words_of_all(E{}));
  }

  template <Worded E>
  void operator()(std::string_view name, std::optional<E>& value) const {
    const toml::node* node = find(name);
    if (node) value = word<E>(*node, name, words_of_all(E{}));
  }

  void operator()(std::string_view name, DampingSettings& damping, const Rule& rule) const {
    const toml::node* node = find(name);
    if (!node) return;
    if (node->is_number()) {
      damping.rule = DampingRule::constant;
      return (*this)(name, damping.constant, rule);
    }
    auto choices = words_of_all(DampingRule{});
    choices.push_back("a positive number");
    damping.rule = word<DampingRule>(*node, name, choices);
  }
  void operator()(std::string_view name, std::optional<DampingSettings>& damping,
                  const Rule& rule) const {
    if (find(name)) (*this)(name, damping.emplace(), rule);
  }

  void operator()(std::string_view name, NoiseKey& noise, const Rule& rule) const {
    const toml::node* node = find(name);
    if (!node) return;
    noise.estimated = node->is_string();
    if (!noise.estimated && node->is_number()) return (*this)(name, noise.deviation, rule);
    if (!noise.estimated || **node->as_string() != kEstimated) {
      refuse(*node, name, "a positive number or estimated");
    }
  }

  void operator()(std::string_view name, ColumnScaling& scaling) const {
    const toml::node* node = find(name);
    if (!node) return;
    if (node->is_boolean()) {
      scaling = **node->as_boolean() ? ColumnScaling::pooled : ColumnScaling::none;
    } else {
      scaling = word<ColumnScaling>(*node, name, {"true", "false", "robust"});
    }
  }

  void operator()(std::string_view name, std::optional<PriorSettings>& prior) const {
    const toml::node* node = find(name);
    if (!node) return;
    if (node->is_table()) return (*this)(name, prior, PriorSettings{});
    if (!node->is_string() || **node->as_string() != "flat") {
      refuse(*node, name, "flat or { mean = …, precision = … }");
    }
    prior.reset();
  }

  template <Section S>
  void operator()(std::string_view name, S& section) const {
    static const toml::table kNothing;
    const toml::node* node = find(name);
    read(node ? table_at(*node, name) : kNothing, fmt::format("{}{}.", prefix_, name), source_,
         section);
  }

  template <Section S>
  void operator()(std::string_view name, std::optional<S>& section, const S& start) const {
    if (!find(name)) return;
    section = start;
    (*this)(name, *section);
  }

  void operator()(std::string_view name, std::vector<PhaseSettings>& phases) const {
    const toml::node* node = find(name);
    if (!node) throw InputError(fmt::format("{}: at least one [[{}]] is missing", source_, name));
    const toml::array* array = node->as_array();
    if (!array || array->empty()) refuse(*node, name, "one or more [[phase]] tables");
    read_each(name, *array, phases);
  }
  void operator()(std::string_view name, std::vector<CoefficientPrior>& priors) const {
    const toml::node* node = find(name);
    if (!node) return;
    const toml::array* array = node->as_array();
    if (!array) refuse(*node, name, "[[prior]] tables");
    read_each(name, *array, priors);
  }

 private:
  template <Section S>
  void read_each(std::string_view name, const toml::array& array, std::vector<S>& sections) const {
    for (std::size_t i = 0; i < array.size(); ++i) {
      const std::string numbered = fmt::format("{}.{}", name, i);
      read(table_at(array[i], numbered), numbered + ".", source_, sections.emplace_back());
    }
  }

  const toml::node* find(std::string_view name, const Rule& rule = {}) const {
    const toml::node* node = table_.get(name);
    if (!node && rule.needed) {
      throw InputError(fmt::format("{}: {}{} is missing", place(table_, source_), prefix_, name));
    }
    return node;
  }

  std::string name_or_number(const toml::node& node, std::string_view name,
                             const Rule& rule) const {
    if (node.is_string()) return **node.as_string();
    if (!node.is_integer()) refuse(node, name, "a name or a whole number");
    const std::int64_t number = **node.as_integer();
    if (const auto expected = broken(rule, double(number))) refuse(node, name, *expected);
    return fmt::to_string(number);
  }

  std::optional<std::int64_t> integer(std::string_view name, const Rule& rule) const {
    const toml::node* node = find(name, rule);
    if (!node) return std::nullopt;
    if (!node->is_integer()) refuse(*node, name, "an integer");
    const std::int64_t number = **node->as_integer();
    if (const auto expected = broken(rule, double(number))) refuse(*node, name, *expected);
    return number;
  }

  template <Worded E>
  E word(const toml::node& node, std::string_view name,
         const std::vector<std::string_view>& choices) const {
    if (!node.is_string()) refuse(node, name, listed(choices));
    const std::string& came = **node.as_string();
    for (const auto& [text, value] : words_of(E{})) {
      if (text == came) return value;
    }
    refuse(node, name, listed(choices), suggestion(came, words_of_all(E{})));
  }

  const toml::table& table_at(const toml::node& node, std::string_view name) const {
    if (!node.is_table()) refuse(node, name, "a table");
    return *node.as_table();
  }

  // The first in the file, where there are several.
  void refuse_unknown(const std::vector<std::string_view>& known) const {
    const toml::node* first = nullptr;
    std::string_view name;
    for (const auto& [key, node] : table_) {
      if (std::find(known.begin(), known.end(), key.str()) != known.end()) continue;
      if (first && first->source().begin <= node.source().begin) continue;
      first = &node;
      name = key.str();
    }
    if (!first) return;
    std::vector<std::string_view> candidates = known;
    if (prefix_.empty()) candidates.insert(candidates.end(), {"extends", "set"});
    const auto near = nearest(name, candidates);
    throw InputError(fmt::format("{}: {}{} is not a setting; {}", place(*first, source_), prefix_,
                                 shown(name),
                                 near ? fmt::format("did you mean {}{}?", prefix_, *near)
                                      : fmt::format("known: {}", fmt::join(known, ", "))));
  }

  [[noreturn]] void refuse(const toml::node& node, std::string_view name, std::string_view expected,
                           std::string_view hint = {}) const {
    throw InputError(fmt::format("{}: {}{} must be {}, but is {}{}", place(node, source_), prefix_,
                                 name, expected, described(node), hint));
  }

  const toml::table& table_;
  std::string prefix_;
  const std::string& source_;
};

Recipe read_tree(toml::table table, const std::string& source,
                 const std::vector<std::string>& overrides) {
  for (const std::string& change : overrides) apply_override(table, change);
  Recipe recipe;
  Reader::read(table, "", source, recipe);
  return resolved(std::move(recipe));
}

}  // namespace

Recipe parse_recipe(std::string_view text, std::string_view source,
                    const std::vector<std::string>& overrides) {
  const std::string name(source);
  return read_tree(parse_whole(text, name), name, overrides);
}

Recipe read_recipe(const std::filesystem::path& file, const std::vector<std::string>& overrides) {
  return read_tree(read_extended(file), file.string(), overrides);
}

}  // namespace fedep
