#include "fedep/config/override.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fedep/message/error.h"
#include "fedep/message/nearest.h"

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

// One override, taken apart.
class Override {
 public:
  explicit Override(std::string_view text) : source_(fmt::format("{}{}", kOverrideMark, text)) {
    const std::size_t equals = text.find('=');
    if (std::any_of(text.begin(), text.end(), is_control) || equals == std::string_view::npos) {
      throw InputError(fmt::format("{}{}: expected section.key=value", kOverrideMark, shown(text)));
    }
    value_ = text.substr(equals + 1);
    std::string_view rest = text.substr(0, equals);
    while (true) {
      const std::size_t dot = rest.find('.');
      keys_.emplace_back(rest.substr(0, dot));
      if (!is_key(keys_.back())) refuse("expected section.key=value");
      if (dot == std::string_view::npos) break;
      rest = rest.substr(dot + 1);
    }
  }

  void apply(toml::table& recipe) const {
    toml::array* phases = keys_[0] == "phase" ? recipe["phase"].as_array() : nullptr;
    if (!phases || keys_.size() == 1) return set(recipe, 0);
    if (is_number(keys_[1])) return set(phase_at(*phases), 2);
    bool found = false;
    for (toml::node& phase : *phases) {
      toml::table* table = phase.as_table();
      if (!table || !has_tables(*table)) continue;
      set(*table, 1);
      found = true;
    }
    if (!found) refuse(fmt::format("no phase has a table {}", fmt::join(tables(), ".")));
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

  toml::table& phase_at(toml::array& phases) const {
    if (phases.empty()) refuse("there are no phases");
    std::size_t index = phases.size();
    std::from_chars(keys_[1].data(), keys_[1].data() + keys_[1].size(), index);
    toml::table* table = index < phases.size() ? phases[index].as_table() : nullptr;
    if (!table) {
      refuse(
          fmt::format("phase.{} does not exist, phases are 0 to {}", keys_[1], phases.size() - 1));
    }
    if (keys_.size() == 2) refuse(fmt::format("phase.{} is a table; set its keys", keys_[1]));
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
    try {
      return toml::parse(fmt::format("{} = {}", key, value_), source_);
    } catch (const toml::parse_error& error) {
      const std::string_view trimmed = value_;
      const std::size_t start = trimmed.find_first_not_of(' ');
      if (start == std::string_view::npos) refuse("expected a value after =");
      if (std::string_view("\"'[{").find(trimmed[start]) != std::string_view::npos) {
        refuse(fmt::format("the value is not TOML: {}", error.description()));
      }
    }
    std::string quoted;
    for (const char c : value_) {
      if (c == '"' || c == '\\') quoted += '\\';
      quoted += c;
    }
    try {
      return toml::parse(fmt::format("{} = \"{}\"", key, quoted), source_);
    } catch (const toml::parse_error& error) {
      refuse(fmt::format("the value is not TOML: {}", error.description()));
    }
  }

  [[noreturn]] void refuse(std::string_view why) const {
    throw InputError(fmt::format("{}: {}", source_, why));
  }

  std::string source_;
  Keys keys_;
  std::string value_;
};

}  // namespace

void apply_override(toml::table& recipe, std::string_view override_text) {
  Override(override_text).apply(recipe);
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
