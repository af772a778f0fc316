// What the page shows of a linear model on a table: effects, what lies behind the weights, and whose data it rests on.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fedep/page/figure/forest_figure.h"

namespace fedep {

struct CoefficientReport {
  // A standard deviation that was learned, such as that of hospitals' intercepts.
  struct Spread {
    std::string name;
    double estimate = 0;
    std::optional<Bounds> interval = {};
  };
  struct Share {
    std::string name;
    double share = 0;  // of the information
  };

  ForestFigure figure = {};
  std::vector<Spread> spreads = {};
  std::vector<Share> shares = {};  // largest first, the prior last; empty: they are not known
  std::string shares_note = {};    // what is to be said of them, or why there are none
};

}  // namespace fedep
