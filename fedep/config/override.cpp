#include "fedep/config/override.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fedep/message/error.h"
#include "fedep/message/nearest.h"
#include "fedep/message/nesting.h"

namespace fedep {
namespace {

using Keys = std::vector<std::string>;

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

bool is_key(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  });
}

bool is_number(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// A key, the TOML of its value, and where they are written.
struct Change {
  std::string key;
  std::string value;
  std::string source;     // what errors call it
  std::string file;       // the value is read as a line of this,
  std::size_t line;       // counted from 1
  std::string_view form;  // what a key was expected to look like
};

class Override {
 public:
  explicit Override(Change change) : change_(std::move(change)) {
    std::string_view key = change_.key;
    while (true) {
      const std::size_t dot = key.find('.');
      keys_.emplace_back(key.substr(0, dot));
      if (!is_key(keys_.back())) refuse(fmt::format("expected {}", change_.form));
      if (dot == std::string_view::npos) break;
      if (keys_.size() == kMostNesting) refuse_depth();
      key = key.substr(dot + 1);
    }
    if (keys_[0] == "extends" || keys_[0] == "set") {
      refuse(fmt::format("{} is no setting but a part of a recipe's file", keys_[0]));
    }
  }

  void apply(toml::table& recipe) const {
    const bool is_list = keys_[0] == "phase" || keys_[0] == "prior";
    toml::array* items = is_list ? recipe[keys_[0]].as_array() : nullptr;
    if (!items || keys_.size() == 1) return set(recipe, 0);
    if (is_number(keys_[1])) return set(item_at(*items), 2);
    bool found = false;
    for (toml::node& item : *items) {
      toml::table* table = item.as_table();
      if (!table || !has_tables(*table)) continue;
      set(*table, 1);
      found = true;
    }
    if (!found) refuse(fmt::format("no {} has a table {}", keys_[0], fmt::join(tables(), ".")));
  }

 private:
  // The tables a key without index must find in a phase: `inference` of phase.inference.alpha.
  Keys tables() const { return Keys(keys_.begin() + 1, keys_.end() - 1); }

  bool has_tables(const toml::table& phase) const {
    const toml::table* table = &phase;
    for (const std::string& key : tables()) {
      const toml::node* inside = table->get(key);
      table = inside ? inside->as_table() : nullptr;
      if (!table) return false;
    }
    return true;
  }

  toml::table& item_at(toml::array& items) const {
    if (items.empty()) refuse(fmt::format("there are no {}s", keys_[0]));
    std::size_t index = items.size();
    std::from_chars(keys_[1].data(), keys_[1].data() + keys_[1].size(), index);
    toml::table* table = index < items.size() ? items[index].as_table() : nullptr;
    if (!table) {
      refuse(fmt::format("{0}.{1} does not exist, {0}s are 0 to {2}", keys_[0], keys_[1],
                         items.size() - 1));
    }
    if (keys_.size() == 2)
      refuse(fmt::format("{}.{} is a table; set its keys", keys_[0], keys_[1]));
    return *table;
  }

  // Follows the keys from `first` on; where they leave the tree, grafts what is left of them.
  void set(toml::table& root, std::size_t first) const {
    toml::table* table = &root;
    std::size_t at = first;
    for (; at + 1 < keys_.size(); ++at) {
      toml::node* inside = table->get(keys_[at]);
      if (!inside) break;
      table = inside->as_table();
      if (!table) {
        refuse(fmt::format("{} is {}, not a table",
                           fmt::join(keys_.begin(), keys_.begin() + at + 1, "."),
                           described(*inside)));
      }
    }
    // Moved, never copied: a copy forgets where it came from.
    toml::table graft = parsed(fmt::format("{}", fmt::join(keys_.begin() + at, keys_.end(), ".")));
    toml::node* value = graft.get(keys_[at]);
    value->visit([&](auto& node) { table->insert_or_assign(keys_[at], std::move(node)); });
  }

  toml::table parsed(const std::string& key) const {
    if (deep_toml_line(placed(key, change_.value))) refuse_depth();
    try {
      return toml::parse(placed(key, change_.value), change_.file);
    } catch (const toml::parse_error& error) {
      const std::string_view trimmed = change_.value;
      const std::size_t start = trimmed.find_first_not_of(' ');
      if (start == std::string_view::npos) refuse("expected a value after =");
      if (std::string_view("\"'[{").find(trimmed[start]) != std::string_view::npos) {
        refuse(fmt::format("the value is not TOML: {}", problem_of(error)));
      }
    }
    std::string quoted;
    for (const char c : change_.value) {
      if (c == '"' || c == '\\') quoted += '\\';
      quoted += c;
    }
    try {
      return toml::parse(placed(key, '"' + quoted + '"'), change_.file);
    } catch (const toml::parse_error& error) {
      refuse(fmt::format("the value is not TOML: {}", problem_of(error)));
    }
  }

  // On its line, which errors then name.
  std::string placed(const std::string& key, const std::string& value) const {
    return fmt::format("{}{} = {}", std::string(change_.line - 1, '\n'), key, value);
  }

  [[noreturn]] void refuse_depth() const {
    refuse(fmt::format("tables and arrays must nest at most {} deep, but go deeper", kMostNesting));
  }

  [[noreturn]] void refuse(std::string_view why) const {
    throw InputError(fmt::format("{}: {}", change_.source, why));
  }

  Change change_;
  Keys keys_;
};

struct SetLine {
  std::string key;
  const toml::node* value;
};

// phase.1.clip = 300 and [set.phase.1] are tables inside [set]; a table in braces is a value.
void collect(const toml::table& table, const std::string& prefix, std::vector<SetLine>& lines) {
  for (const auto& [key, node] : table) {
    const std::string path = prefix + std::string(key.str());
    const toml::table* inside = node.as_table();
    if (inside && !inside->is_inline()) {
      collect(*inside, path + ".", lines);
    } else {
      lines.push_back({path, &node});
    }
  }
}

std::string toml_text(const toml::node& node) {
  std::ostringstream text;
  node.visit([&](const auto& value) { text << value; });
  return text.str();
}

}  // namespace

void apply_override(toml::table& recipe, std::string_view text) {
  constexpr std::string_view kForm = "section.key=value";
  const std::size_t equals = text.find('=');
  if (std::any_of(text.begin(), text.end(), is_control) || equals == std::string_view::npos) {
    throw InputError(fmt::format("{}{}: expected {}", kOverrideMark, shown(text), kForm));
  }
  constexpr std::size_t kLong = 200;
  const std::string source =
      fmt::format("{}{}", kOverrideMark, text.size() > kLong ? shown(text) : std::string(text));
  Override({.key = std::string(text.substr(0, equals)),
            .value = std::string(text.substr(equals + 1)),
            .source = source,
            .file = source,
            .line = 1,
            .form = kForm})
      .apply(recipe);
}

void apply_set(toml::table& recipe) {
  toml::node* const node = recipe.get("set");
  if (!node) return;
  if (!node->is_table()) {
    throw InputError(fmt::format("{}: set must be a table, but is {}", place(*node, "recipe"),
                                 described(*node)));
  }
  const toml::table set = std::move(*node->as_table());
  recipe.erase("set");
  std::vector<SetLine> lines;
  collect(set, "", lines);
  std::sort(lines.begin(), lines.end(), [](const SetLine& a, const SetLine& b) {
    return a.value->source().begin < b.value->source().begin;
  });
  for (const auto& [key, value] : lines) {
    const toml::source_region& region = value->source();
    Override({.key = key,
              .value = toml_text(*value),
              .source = place(*value, "recipe"),
              .file = region.path ? *region.path : "",
              .line = region.begin.line,
              .form = "a key such as phase.1.clip"})
        .apply(recipe);
  }
}

std::string place(const toml::node& node, const std::string& source) {
  const toml::source_region& region = node.source();
  if (!region.path) return source;
  if (region.path->starts_with(kOverrideMark)) return *region.path;
  return fmt::format("{}:{}", *region.path, region.begin.line);
}

std::string problem_of(const toml::parse_error& error) {
  constexpr std::size_t kLongest = 300;
  std::string text(error.description().substr(0, kLongest));
  std::replace_if(text.begin(), text.end(), is_control, '?');
  return text;
}

std::string described(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::string: {
      const std::string text = shown(**node.as_string());
      return text.front() == '"' ? text : fmt::format("\"{}\"", text);
    }
    case toml::node_type::integer:
      return fmt::to_string(**node.as_integer());
    case toml::node_type::floating_point:
      return fmt::format("{}", **node.as_floating_point());
    case toml::node_type::boolean:
      return **node.as_boolean() ? "true" : "false";
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return "an array";
    default:
      return "a date or time";
  }
}

}  // namespace fedep
