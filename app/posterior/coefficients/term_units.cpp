#include "app/posterior/coefficients/term_units.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "fedep/message/error.h"
#include "fedep/message/nearest.h"

namespace fedep {
namespace {

std::vector<std::string> columns_of(std::span<const Term> terms, TermKind kind) {
  std::vector<std::string> out;
  for (const Term& term : terms) {
    if (term.kind == kind && (out.empty() || out.back() != term.column)) out.push_back(term.column);
  }
  return out;
}

std::optional<double> number_in(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Of a column that is a number, or of each factor that is.
template <class Use>
void each_number(const Term& term, const Use& use) {
  if (term.kind == TermKind::number) use(term);
  for (const Term& factor : term.factors) each_number(factor, use);
}

// A column of zeros and ones: between them, no other has this variance.
bool is_zero_one(const Term& number) {
  constexpr double kRounding = 1e-9;
  const double m = number.mean, variance = number.divisor * number.divisor;
  return m > 0 && m < 1 && std::abs(variance - m * (1 - m)) < kRounding;
}

// The term of a level, null for the reference; nothing for what the column has not.
std::optional<const Term*> find_level(std::span<const Term> terms, std::string_view column,
                                      std::string_view level) {
  for (const Term& term : terms) {
    if (term.kind != TermKind::category || term.column != column) continue;
    if (term.level == level) return &term;
    if (term.reference == level) return nullptr;
  }
  return std::nullopt;
}

}  // namespace

PerUnits parse_per(std::span<const std::string> texts, std::span<const Term> terms) {
  const std::vector<std::string> columns = columns_of(terms, TermKind::number);
  PerUnits out;
  for (const std::string& text : texts) {
    const std::size_t sign = text.rfind('=');
    if (sign == std::string::npos) {
      throw InputError(fmt::format("--per must be COLUMN=NUMBER, but is {}", shown(text)));
    }
    const std::string column = text.substr(0, sign);
    if (std::ranges::find(columns, column) == columns.end()) {
      throw InputError(fmt::format("--per: column must be one that holds numbers ({}), but is {}",
                                   shown_list(columns, 20), shown(column)));
    }
    const std::optional<double> value = number_in(std::string_view(text).substr(sign + 1));
    if (!value || !(*value > 0) || !std::isfinite(*value)) {
      throw InputError(fmt::format("--per {}: must be a positive number, but is {}", shown(column),
                                   shown(text.substr(sign + 1))));
    }
    out[column] = *value;
  }
  return out;
}

TermUnits units_of(const Term& term, const PerUnits& per, bool scaled) {
  TermUnits out{.own = 1 / term.divisor, .figure = 1 / term.divisor, .figure_name = term.name};
  bool has_deviation = false;
  each_number(term, [&](const Term& number) {
    const auto found = per.find(number.column);
    if (found != per.end()) {
      out.per *= found->second;
      out.figure *= found->second;
    } else if (!is_zero_one(number)) {
      has_deviation = true;
      out.figure *= number.divisor;
    }
  });
  out.own *= out.per;
  if (term.kind == TermKind::number && is_zero_one(term) && out.per == 1) {
    out.figure_name += ", 1 vs 0";
  } else if (has_deviation && scaled) {
    out.figure_name += term.kind == TermKind::number
                           ? fmt::format(", per sd of {:.3g}", term.divisor)
                           : ", per sd";
  }
  if (out.per != 1) out.figure_name += fmt::format(", per {:g}", out.per);
  return out;
}

LevelPair parse_contrast(const std::string& text, std::span<const Term> terms) {
  const std::vector<std::string> columns = columns_of(terms, TermKind::category);
  for (const std::string& column : columns) {
    if (!text.starts_with(column + "=")) continue;
    const std::string levels = text.substr(column.size() + 1);
    for (std::size_t comma = levels.find(','); comma != std::string::npos;
         comma = levels.find(',', comma + 1)) {
      const std::string first = levels.substr(0, comma), second = levels.substr(comma + 1);
      const auto a = find_level(terms, column, first), b = find_level(terms, column, second);
      if (a && b && first != second) return {column, first, second, *a, *b};
    }
  }
  throw InputError(fmt::format(
      "--contrast must be COLUMN=LEVEL,LEVEL with two levels of a category ({}), but is {}",
      columns.empty() ? "there is none" : shown_list(columns, 20), shown(text)));
}

}  // namespace fedep
