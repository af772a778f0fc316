#include "fedep/data/table/term.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "fedep/data/table/table_features.h"

namespace fedep {
namespace {

Term term_of(TermKind kind, std::string name, const ColumnScale& scale) {
  return {.kind = kind,
          .name = std::move(name),
          .mean = scale.mean,
          .divisor = scale.deviation,
          .varies = scale.varies};
}

Term number_term(const std::string& column, const ColumnScale& scale) {
  Term term = term_of(TermKind::number, column, scale);
  term.column = column;
  return term;
}

// One for each level but the reference.
std::vector<Term> level_terms(TermKind kind, const std::string& column,
                              const CategoryScale& category) {
  std::vector<Term> out;
  for (const auto& [level, scale] : category.others) {
    Term& term = out.emplace_back(
        term_of(kind, fmt::format("{}={} vs {}", column, level, category.baseline), scale));
    term.column = column;
    term.level = level;
    term.reference = category.baseline;
  }
  return out;
}

Term missing_term(const std::string& column, const ColumnScale& scale) {
  Term term = term_of(TermKind::missing, column + " missing", scale);
  term.column = column;
  return term;
}

// Of features of two columns, products with the first one's first feature first.
std::vector<Term> product_terms(const std::vector<Term>& first, const std::vector<Term>& second,
                                const std::vector<ColumnScale>& products) {
  std::vector<Term> out;
  for (const Term& a : first) {
    for (const Term& b : second) {
      Term& term = out.emplace_back(term_of(
          TermKind::interaction, fmt::format("{} * {}", a.name, b.name), products.at(out.size())));
      term.divisor = a.divisor * b.divisor;
      term.factors = {a, b};
    }
  }
  return out;
}

void append(std::vector<Term> more, std::vector<Term>& terms) {
  std::move(more.begin(), more.end(), std::back_inserter(terms));
}

std::vector<Term> interval_terms(const TableScale& scale) {
  CategoryScale category{.baseline = interval_name(scale.cuts, 0), .others = {}};
  for (std::size_t j = 0; j < scale.intervals.size(); ++j) {
    category.others.emplace_back(interval_name(scale.cuts, j + 1), scale.intervals[j]);
  }
  return level_terms(TermKind::interval, "time", category);
}

}  // namespace

std::string interval_name(std::span<const double> cuts, std::size_t interval) {
  if (interval == 0) return cuts.empty() ? "all" : fmt::format("up to {:.6g}", cuts.front());
  if (interval >= cuts.size()) return fmt::format("over {:.6g}", cuts.back());
  return fmt::format("{:.6g} to {:.6g}", cuts[interval - 1], cuts[interval]);
}

std::vector<Term> terms_of_column(const TableSpec& spec, const TableScale& scale,
                                  const std::string& column) {
  const auto number = std::ranges::find(spec.numbers, column);
  if (number != spec.numbers.end()) {
    return {number_term(column, scale.numbers.at(std::size_t(number - spec.numbers.begin())))};
  }
  const auto category = std::ranges::find(spec.categories, column);
  const auto place = std::size_t(category - spec.categories.begin());
  if (place >= scale.categories.size()) return {};  // none without a client
  return level_terms(TermKind::category, column, scale.categories[place]);
}

std::vector<Term> terms_of(const TableFeatures& features) {
  const TableSpec& spec = features.spec;
  const TableScale& scale = features.scale;
  std::vector<Term> out;
  if (spec.intercept) out.push_back({.kind = TermKind::intercept, .name = "intercept"});
  for (const std::vector<std::string>* columns : {&spec.numbers, &spec.categories}) {
    for (const std::string& column : *columns) append(terms_of_column(spec, scale, column), out);
  }
  for (std::size_t j = 0; j < scale.missing.size(); ++j) {
    out.push_back(missing_term(spec.missing_indicators.at(j), scale.missing[j]));
  }
  for (std::size_t j = 0; j < scale.products.size(); ++j) {
    const auto& [first, second] = spec.interactions.at(j);
    append(product_terms(terms_of_column(spec, scale, first), terms_of_column(spec, scale, second),
                         scale.products[j]),
           out);
  }
  append(interval_terms(scale), out);
  return out;
}

}  // namespace fedep
