// A forest plot: one row per effect, its estimate and interval against the line of no effect, numbers beside.
//
//   file << draw_forest({.title = "Odds ratios", .axis = "odds ratio", .scale = EffectScale::ratio,
//                        .rows = {{"age, per 10 years", std::log(1.8), {{std::log(1.2), std::log(2.7)}}}}});
//
// Effects add: a ratio is given by its logarithm, and drawn and written as the ratio.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fedep/page/figure/effect_text.h"

namespace fedep {

struct ForestRow {
  std::string name;
  double estimate = 0;                  // of a ratio, its logarithm
  std::optional<Bounds> interval = {};  // low, high; none: a point estimate
  std::string group =
      {};  // consecutive rows of one group stand under its name, in a panel of their own
};

struct ForestFigure {
  std::string title;
  std::string note = {};                   // at the right of the title: "95 % intervals"
  std::string axis = {};                   // what is drawn: "odds ratio"
  std::string caption = {};                // below the picture, broken into lines
  EffectScale scale = EffectScale::ratio;  // of ratios the axis is logarithmic
  std::vector<ForestRow> rows = {};
};

// All panels have one axis, which most rows decide: an interval that reaches more than four times as far as three of
// four rows do ends in an arrow, an estimate more than ten times as far away is one, and the numbers say where they
// would be. Throws InputError without a row, or for a number that is not finite.
std::string draw_forest(const ForestFigure& figure);

}  // namespace fedep
