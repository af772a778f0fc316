// Learning curves as a static picture (Guo+23 Fig. 2, 3, 5, 7): a line per algorithm, the average
// over seeds, and a shaded region of two standard deviations.
//
//   file << draw_curves({.title = "Accuracy", .y_label = "accuracy, %", .curves = {…}});
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fedep {

// After rounds 1, 2, …; NaN where there is nothing. Lines join what is there.
struct FigureCurve {
  std::string name;
  std::vector<double> mean;
  std::vector<double> deviation = {};  // over seeds; NaN or nothing: no region
  std::vector<double> marginal = {};   // of predictions averaged over draws; dotted, with diamonds
};

struct CurveFigure {
  std::string title;
  std::string note;  // right of the title: "mean ± 2 standard deviations, 5 seeds"
  std::string y_label;
  double scale = 1;  // of the values shown: 100 for percent
  std::vector<FigureCurve> curves;
  std::vector<std::int64_t> switches = {};  // completed rounds after which a phase begins
};

// An SVG document. Throws InputError if no curve has a point.
std::string draw_curves(const CurveFigure& figure);

}  // namespace fedep
