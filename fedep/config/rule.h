// What a setting may be, and the words of settings that choose one of a few. Used by fields.h.
#pragma once

#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "fedep/algorithm/algorithm.h"
#include "fedep/config/recipe.h"

namespace fedep {

struct Rule {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool high_allowed = true;
  std::vector<int> only = {};                 // one of these, where there are any
  void (*known)(std::string_view) = nullptr;  // throws for a name its registry does not have
  bool needed = false;                        // no default: a recipe without it is refused
};

// Most numbers become floats, and so do their products with a weight, a number of examples or one
// another. Within these bounds none of that leaves float's range of 1e-38 to 3e38: a precision and
// a rate are squares of what a weight and a noise may be.
inline constexpr double kLargest = 1e12, kLargestSquare = 1e24;

inline Rule at_least(int low) { return {.low = double(low)}; }
inline Rule between(double low, double high) { return {.low = low, .high = high}; }
inline Rule positive() { return between(1e-12, kLargest); }
inline Rule positive_square() { return between(1e-24, kLargestSquare); }
inline Rule not_negative() { return between(0, kLargest); }
inline Rule not_negative_square() { return between(0, kLargestSquare); }
inline Rule fraction() { return between(0, 1); }
inline Rule fraction_below_one() { return {.low = 0, .high = 1, .high_allowed = false}; }
inline Rule one_of(int a, int b) { return {.only = {a, b}}; }
inline Rule known_algorithm() {
  return {.known = [](std::string_view name) { (void)find_algorithm(name); }};
}
inline Rule needed(Rule rule = {}) {
  rule.needed = true;
  return rule;
}

// "≥ 1", "[0, 1)", as docs/recipe.md has it; nothing for a rule without bounds.
inline std::string range_text(const Rule& rule) {
  if (std::isfinite(rule.high)) {
    const auto bound = [](double value) {
      std::string text = fmt::format("{}", value);
      if (std::fabs(value) >= 1e6) text = fmt::format("{:.0e}", value);
      std::erase(text, '+');
      return text;
    };
    return fmt::format("[{}, {}{}", bound(rule.low), bound(rule.high),
                       rule.high_allowed ? "]" : ")");
  }
  return std::isfinite(rule.low) ? fmt::format("≥ {}", rule.low) : "";
}

// What a number should have been, or nothing if it is right: "at least 1", "in [0, 1)", "64 or 32".
inline std::optional<std::string> broken(const Rule& rule, double value) {
  if (!rule.only.empty()) {
    std::string expected;
    for (const int choice : rule.only) {
      if (value == choice) return std::nullopt;
      expected += fmt::format("{}{}", expected.empty() ? "" : " or ", choice);
    }
    return expected;
  }
  if (!std::isfinite(value)) return "finite";
  const bool above = value >= rule.low;
  // What must stay below its bound does so as a float too.
  const bool below = rule.high_allowed ? value <= rule.high : float(value) < float(rule.high);
  if (above && below) return std::nullopt;
  if (!above && rule.low == 0 && rule.high > 1) return "at least 0";
  if (value <= 0 && rule.low > 0 && rule.low < 1) return "positive";
  if (std::isfinite(rule.high)) return "in " + range_text(rule);
  return fmt::format("at least {}", rule.low);
}

template <class E>
struct Word {
  std::string_view word;
  E value;
};

inline constexpr auto words_of(LabelKind) {
  return std::array{Word{"yes_no", LabelKind::yes_no}, Word{"classes", LabelKind::classes},
                    Word{"number", LabelKind::number}, Word{"count", LabelKind::count},
                    Word{"time_to_event", LabelKind::time_to_event}};
}
// `pooled` and `none` have no words: they are true and false.
inline constexpr auto words_of(ColumnScaling) {
  return std::array{Word{"robust", ColumnScaling::robust}};
}
inline constexpr auto words_of(NormKind) {
  return std::array{Word{"per_position", NormKind::per_position},
                    Word{"group_norm", NormKind::group_norm}};
}
inline constexpr auto words_of(Remainder) {
  return std::array{Word{"drop", Remainder::drop}, Word{"keep", Remainder::keep}};
}
inline constexpr auto words_of(LabelSampler) {
  return std::array{Word{"model", LabelSampler::model},
                    Word{"softmax_index", LabelSampler::softmax_index}};
}
inline constexpr auto words_of(FamilyChoice) {
  return std::array{Word{"auto", FamilyChoice::automatic},
                    Word{"isotropic", FamilyChoice::isotropic},
                    Word{"diagonal", FamilyChoice::diagonal}, Word{"full", FamilyChoice::full}};
}
inline constexpr auto words_of(CurvatureChoice) {
  return std::array{Word{"none", CurvatureChoice::none}, Word{"full", CurvatureChoice::full}};
}
inline constexpr auto words_of(FactorStart) {
  return std::array{Word{"carry_mean", FactorStart::carry_mean}, Word{"flat", FactorStart::flat}};
}
inline constexpr auto words_of(FactorClock) {
  return std::array{Word{"visit", FactorClock::visit}, Word{"round", FactorClock::round}};
}
inline constexpr auto words_of(SiteMemory) {
  return std::array{Word{"memory", SiteMemory::memory}, Word{"disk", SiteMemory::disk}};
}
inline constexpr auto words_of(OptimizerHandover) {
  return std::array{Word{"fresh", OptimizerHandover::fresh},
                    Word{"carry", OptimizerHandover::carry}};
}
inline constexpr auto words_of(HandOver) {
  return std::array{Word{"mean", HandOver::mean}, Word{"average", HandOver::average}};
}
inline constexpr auto words_of(AverageKind) {
  return std::array{Word{"exponential", AverageKind::exponential}, Word{"tail", AverageKind::tail}};
}
inline constexpr auto words_of(ScheduleKind) {
  return std::array{Word{"constant", ScheduleKind::constant}, Word{"linear", ScheduleKind::linear},
                    Word{"cosine", ScheduleKind::cosine}, Word{"steps", ScheduleKind::steps}};
}
inline constexpr auto words_of(CavityKind) {
  return std::array{Word{"own_factor", CavityKind::own_factor},
                    Word{"share", CavityKind::share},
                    Word{"flat", CavityKind::flat},
                    Word{"whole", CavityKind::whole},
                    Word{"proximal", CavityKind::proximal},
                    Word{"dual", CavityKind::dual}};
}
inline constexpr auto words_of(ShareRule) {
  return std::array{Word{"examples", ShareRule::examples}, Word{"equal", ShareRule::equal}};
}
inline constexpr auto words_of(WeightRule) {
  return std::array{Word{"examples", WeightRule::examples}, Word{"equal", WeightRule::equal}};
}
inline constexpr auto words_of(GuardMode) {
  return std::array{Word{"count", GuardMode::count}, Word{"back_off", GuardMode::back_off},
                    Word{"floor", GuardMode::floor}, Word{"skip", GuardMode::skip}};
}
// The rule `constant` has no word: its value is the number.
inline constexpr auto words_of(DampingRule) {
  return std::array{Word{"1/K", DampingRule::one_over_k}, Word{"none", DampingRule::none},
                    Word{"decaying", DampingRule::decaying}};
}

template <class E>
concept Worded = requires(E e) {
  words_of(e);
};

template <Worded E>
std::optional<std::string_view> word_for(E value) {
  for (const auto& [word, meaning] : words_of(value)) {
    if (meaning == value) return word;
  }
  return std::nullopt;
}

}  // namespace fedep
