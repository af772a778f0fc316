// In what units a term's coefficient is told: per standard deviation it is as the model has it; here, what it is
// multiplied by for the column's own unit, for so many units as --per says, and in a forest plot.
#pragma once

#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fedep/data/table/term.h"

namespace fedep {

// Column -> how many of its units a coefficient is told for.
using PerUnits = std::map<std::string, double>;
// Of "age=10" and the like. Throws InputError for what is not so, for a column that is no number of these terms, and
// for a number that is not positive.
PerUnits parse_per(std::span<const std::string> texts, std::span<const Term> terms);

// A level against its reference, or a number by its units. Of an interaction the product.
struct TermUnits {
  double own = 1;
  double per = 1;  // how many units of the column that is, or product of units
  double figure = 1;
  std::string figure_name = {};
};
TermUnits units_of(const Term& term, const PerUnits& per, bool scaled);

// "unit=icu,hdu": these two levels of a column, by their terms; null: the reference has none.
struct LevelPair {
  std::string column, first, second;
  const Term* first_term = nullptr;
  const Term* second_term = nullptr;
};
// Throws InputError for what names no two levels of a category.
LevelPair parse_contrast(const std::string& text, std::span<const Term> terms);

}  // namespace fedep
