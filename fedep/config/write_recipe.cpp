#include "fedep/config/write_recipe.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fedep/config/comma_list.h"
#include "fedep/config/fields.h"
#include "fedep/config/resolve.h"

namespace fedep {
namespace {

std::string toml_value(double value) {
  const std::string text = fmt::format("{}", value);
  // TOML tells 1 from 1.0.
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

std::string toml_value(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      quoted += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

// As "a, b" where that reads back as the same list.
std::string toml_value(const std::vector<std::string>& items) {
  const std::string joined = fmt::format("{}", fmt::join(items, ", "));
  if (comma_list(joined) == items) return toml_value(std::string_view(joined));
  std::vector<std::string> quoted;
  for (const std::string& item : items) quoted.push_back(toml_value(std::string_view(item)));
  return fmt::format("[{}]", fmt::join(quoted, ", "));
}

// One section: its own lines, then those of the tables inside it, which TOML wants last.
class Writer {
 public:
  explicit Writer(std::string path) : path_(std::move(path)) {}

  template <Section S>
  static std::string written(const std::string& header, const std::string& path, S& section) {
    Writer writer(path);
    list_fields(writer, section);
    return header + writer.lines_ + writer.tables_;
  }

  void operator()(std::string_view name, int value, const Rule&) {
    line(name, fmt::to_string(value));
  }
  void operator()(std::string_view name, std::uint64_t value, const Rule&) {
    line(name, fmt::to_string(value));
  }
  void operator()(std::string_view name, double value, const Rule& = {}) {
    line(name, toml_value(value));
  }
  void operator()(std::string_view name, const std::optional<std::uint64_t>& value,
                  const Rule& rule) {
    if (value) (*this)(name, *value, rule);
  }
  void operator()(std::string_view name, const std::optional<double>& value, const Rule& rule) {
    if (value) (*this)(name, *value, rule);
  }
  void operator()(std::string_view name, bool value) { line(name, value ? "true" : "false"); }
  void operator()(std::string_view name, const std::optional<bool>& value) {
    if (value) (*this)(name, *value);
  }
  void operator()(std::string_view name, const std::string& value, const Rule& = {}) {
    line(name, toml_value(std::string_view(value)));
  }
  void operator()(std::string_view name, const std::vector<std::string>& items, const Rule& = {}) {
    line(name, toml_value(items));
  }

  template <Worded E>
  void operator()(std::string_view name, E value) {
    line(name, toml_value(word_for(value).value()));
  }
  template <Worded E>
  void operator()(std::string_view name, const std::optional<E>& value) {
    if (value) (*this)(name, *value);
  }

  void operator()(std::string_view name, const NoiseKey& noise, const Rule&) {
    line(name, noise.estimated ? toml_value(kEstimated) : toml_value(noise.deviation));
  }
  void operator()(std::string_view name, ColumnScaling scaling) {
    const auto word = word_for(scaling);
    line(name, word ? toml_value(*word) : scaling == ColumnScaling::pooled ? "true" : "false");
  }
  void operator()(std::string_view name, const DampingSettings& damping, const Rule&) {
    const auto word = word_for(damping.rule);
    line(name, word ? toml_value(*word) : toml_value(damping.constant));
  }
  void operator()(std::string_view name, const std::optional<DampingSettings>& damping,
                  const Rule& rule) {
    if (damping) (*this)(name, *damping, rule);
  }
  void operator()(std::string_view name, const std::optional<PriorSettings>& prior) {
    line(name, prior ? fmt::format("{{ mean = {}, precision = {} }}", toml_value(prior->mean),
                                   toml_value(prior->precision))
                     : toml_value(std::string_view("flat")));
  }

  template <Section S>
  void operator()(std::string_view name, S& section) {
    const std::string path = path_.empty() ? std::string(name) : fmt::format("{}.{}", path_, name);
    tables_ += written(fmt::format("\n[{}]\n", path), path, section);
  }
  template <Section S>
  void operator()(std::string_view name, std::optional<S>& section, const S&) {
    if (section) (*this)(name, *section);
  }
  template <Section S>
  void operator()(std::string_view name, std::vector<S>& sections) {
    for (S& section : sections) {
      tables_ += written(fmt::format("\n[[{}]]\n", name), std::string(name), section);
    }
  }

 private:
  void line(std::string_view name, std::string_view value) {
    lines_ += fmt::format("{} = {}\n", name, value);
  }

  std::string path_;
  std::string lines_;
  std::string tables_;
};

}  // namespace

std::string to_toml(const Recipe& recipe) {
  Recipe complete = filled_in(recipe);
  return Writer::written("", "", complete);
}

}  // namespace fedep
