#include "fedep/config/check_recipe.h"

#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "fedep/config/fields.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

class Checker {
 public:
  explicit Checker(std::string prefix) : prefix_(std::move(prefix)) {}

  void operator()(std::string_view name, double value, const Rule& rule = {}) const {
    if (const auto expected = broken(rule, value)) {
      refuse(name, *expected, fmt::format("{}", value));
    }
  }
  void operator()(std::string_view name, int value, const Rule& rule) const {
    (*this)(name, double(value), rule);
  }
  void operator()(std::string_view name, std::uint64_t value, const Rule&) const {
    constexpr auto kLargest = std::numeric_limits<std::int64_t>::max();
    if (value > kLargest) refuse(name, fmt::format("at most {}", kLargest), fmt::to_string(value));
  }
  void operator()(std::string_view name, const std::optional<std::uint64_t>& value,
                  const Rule& rule) const {
    if (value) (*this)(name, *value, rule);
  }
  void operator()(std::string_view name, const std::optional<double>& value,
                  const Rule& rule) const {
    if (value) (*this)(name, *value, rule);
  }
  void operator()(std::string_view, bool) const {}
  void operator()(std::string_view, const std::optional<bool>&) const {}
  void operator()(std::string_view, const std::vector<std::string>&, const Rule& = {}) const {}

  void operator()(std::string_view name, const std::string& value, const Rule& rule = {}) const {
    if (rule.needed && value.empty())
      throw InputError(fmt::format("{}{} is missing", prefix_, name));
    if (!rule.known) return;
    try {
      rule.known(value);
    } catch (const InputError& error) {
      throw InputError(fmt::format("{}{}: {}", prefix_, name, error.what()));
    }
  }

  // An enum value is one of its words, unless somebody cast a number to it.
  template <Worded E>
  void operator()(std::string_view name, E value) const {
    if (!word_for(value)) refuse(name, "a named choice", fmt::to_string(static_cast<int>(value)));
  }
  template <Worded E>
  void operator()(std::string_view name, const std::optional<E>& value) const {
    if (value) (*this)(name, *value);
  }
  void operator()(std::string_view name, const NoiseKey& noise, const Rule& rule) const {
    if (!noise.estimated) (*this)(name, noise.deviation, rule);
  }
  void operator()(std::string_view name, ColumnScaling scaling) const {
    if (scaling != ColumnScaling::none && scaling != ColumnScaling::pooled &&
        scaling != ColumnScaling::robust) {
      refuse(name, "true, false or robust", fmt::to_string(static_cast<int>(scaling)));
    }
  }
  void operator()(std::string_view name, const DampingSettings& damping, const Rule& rule) const {
    if (damping.rule == DampingRule::constant) return (*this)(name, damping.constant, rule);
    (*this)(name, damping.rule);
  }
  void operator()(std::string_view name, const std::optional<DampingSettings>& damping,
                  const Rule& rule) const {
    if (damping) (*this)(name, *damping, rule);
  }

  template <Section S>
  void operator()(std::string_view name, S& section) const {
    Checker inside(fmt::format("{}{}.", prefix_, name));
    list_fields(inside, section);
  }
  template <Section S>
  void operator()(std::string_view name, std::optional<S>& section, const S& = {}) const {
    if (section) (*this)(name, *section);
  }
  void operator()(std::string_view name, std::vector<PhaseSettings>& phases) const {
    if (phases.empty()) throw InputError("a recipe needs at least one phase, but has none");
    check_each(name, phases);
  }
  void operator()(std::string_view name, std::vector<CoefficientPrior>& priors) const {
    check_each(name, priors);
  }

 private:
  template <Section S>
  void check_each(std::string_view name, std::vector<S>& sections) const {
    for (std::size_t i = 0; i < sections.size(); ++i) {
      (*this)(fmt::format("{}.{}", name, i), sections[i]);
    }
  }

  [[noreturn]] void refuse(std::string_view name, std::string_view expected,
                           std::string_view came) const {
    throw InputError(fmt::format("{}{} must be {}, but is {}", prefix_, name, expected, came));
  }

  std::string prefix_;
};

}  // namespace

void check_recipe(const Recipe& recipe) {
  Recipe copy = recipe;
  Checker checker("");
  list_fields(checker, copy);
}

}  // namespace fedep
