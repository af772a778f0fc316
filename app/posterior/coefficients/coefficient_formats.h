// A table of coefficients as text for people, CSV and LaTeX for papers, JSON for programs, and as a forest plot.
// What the run withholds, none of them has.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "app/posterior/coefficients/coefficient_table.h"
#include "fedep/page/figure/forest_figure.h"

namespace fedep {

// In the columns' own units, or per standard deviation.
std::string coefficients_text(const CoefficientTable& table, EffectUnit unit = EffectUnit::own);
// What every coefficient's information is made of; the table was read with them.
std::string shares_text(const CoefficientTable& table);

std::string coefficients_json(const CoefficientTable& table);
// A header and a line per row, both units. Empty: there is none, or it is withheld.
std::string coefficients_csv(const CoefficientTable& table);
std::string coefficients_latex(const CoefficientTable& table);

// Rows that compare something, which intercepts and pieces of a baseline hazard do not. Throws InputError if
// there is none.
ForestFigure forest_of(const CoefficientTable& table);

// "age, per 10": a row's name in the columns' own units.
std::string own_name(const Coefficient& row);
// "hospitals' intercepts": what a spread's row is the deviation of.
std::string spread_name(const Coefficient& row);
// Why there are no intervals, in one sentence; nothing where there are some.
std::string no_intervals(const CoefficientTable& table);

struct CoefficientFormat {
  std::string_view name;
  std::string (*write)(const CoefficientTable& table);
  bool says_notes;  // what it writes has the table's notes in it
};
std::span<const CoefficientFormat> coefficient_formats();

}  // namespace fedep
