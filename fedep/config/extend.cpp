#include "fedep/config/extend.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fedep/config/override.h"
#include "fedep/message/error.h"
#include "fedep/message/nesting.h"
#include "fedep/message/read_file.h"

namespace fedep {
namespace {

namespace fs = std::filesystem;

constexpr const char* kExtends = "extends";
constexpr std::size_t kMostFiles = 32;
constexpr std::uint64_t kMostBytes = std::uint64_t(16) << 20;

// `named` is what has named the file: nothing, or "recipe.toml:1: extends ".
std::string read_text(const fs::path& file, std::string_view named) {
  std::error_code ignored;
  if (fs::is_directory(file, ignored)) {
    throw InputError(fmt::format("{}{}: cannot be read, it is a directory", named, file.string()));
  }
  try {
    const std::vector<std::byte> bytes = read_file(file, kMostBytes);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}{}", named, error.what()));
  }
}

toml::table parse_toml(std::string_view text, const std::string& source) {
  if (const auto line = deep_toml_line(text)) {
    throw InputError(
        fmt::format("{}:{}: tables and arrays must nest at most {} deep, but go deeper", source,
                    *line, kMostNesting));
  }
  try {
    return toml::parse(text, source);
  } catch (const toml::parse_error& error) {
    throw InputError(
        fmt::format("{}:{}: {}", source, error.source().begin.line, problem_of(error)));
  }
}

// What the child says goes into the base, moved: a copy forgets where it came from.
void merge(toml::table& base, toml::table& child) {
  for (auto&& [key, node] : child) {
    toml::node* there = base.get(key.str());
    toml::table* into = there ? there->as_table() : nullptr;
    if (toml::table* from = node.as_table(); from && into) {
      merge(*into, *from);
    } else {
      node.visit([&, name = std::string(key.str())](auto& value) {
        base.insert_or_assign(name, std::move(value));
      });
    }
  }
}

// The files from the recipe to the one that is being read.
class Chain {
 public:
  toml::table read(const fs::path& file, std::string_view named = {}) {
    const std::string text = read_text(file, named);
    enter(file, named);
    toml::table table = parse_toml(text, file.string());
    if (const toml::node* extends = table.get(kExtends)) {
      const std::string where = place(*extends, file.string());
      const fs::path base = base_of(*extends, file, where);
      table.erase(kExtends);
      refuse_phase_table(table, file);
      toml::table whole = read(base, where + ": extends ");
      merge(whole, table);
      table = std::move(whole);
    }
    apply_set(table);
    return table;
  }

 private:
  void enter(const fs::path& file, std::string_view named) {
    std::error_code ignored;
    const fs::path canonical = fs::weakly_canonical(file, ignored);
    const auto first = std::size_t(std::find(canonical_.begin(), canonical_.end(), canonical) -
                                   canonical_.begin());
    const bool is_there = first < canonical_.size();
    canonical_.push_back(canonical);
    shown_.push_back(file.string());
    if (is_there) {
      throw InputError(
          fmt::format("{}{}, which leads back to itself: {}", named, file.string(),
                      fmt::join(shown_.begin() + std::ptrdiff_t(first), shown_.end(), " -> ")));
    }
    if (shown_.size() > kMostFiles) {
      throw InputError(fmt::format("{}{}: at most {} files may extend one another, but {} do",
                                   named, file.string(), kMostFiles, shown_.size()));
    }
  }

  static fs::path base_of(const toml::node& extends, const fs::path& file,
                          const std::string& where) {
    if (!extends.is_string() || (*extends.as_string())->empty()) {
      throw InputError(fmt::format("{}: extends must be the name of a file, but is {}", where,
                                   described(extends)));
    }
    return (file.parent_path() / **extends.as_string()).lexically_normal();
  }

  static void refuse_phase_table(const toml::table& child, const fs::path& file) {
    const toml::node* phase = child.get("phase");
    if (!phase || phase->is_array()) return;
    throw InputError(
        fmt::format("{}: phase must be one or more [[phase]] tables, which replace the base's, but "
                    "is {}; [set] changes a key of the base's, as in phase.1.clip = 300",
                    place(*phase, file.string()), described(*phase)));
  }

  std::vector<fs::path> canonical_;
  std::vector<std::string> shown_;
};

}  // namespace

toml::table read_extended(const fs::path& file) { return Chain().read(file); }

toml::table parse_whole(std::string_view text, const std::string& source) {
  toml::table table = parse_toml(text, source);
  if (const toml::node* extends = table.get(kExtends)) {
    throw InputError(fmt::format("{}: extends is for recipes in files, but this one is text",
                                 place(*extends, source)));
  }
  apply_set(table);
  return table;
}

}  // namespace fedep
