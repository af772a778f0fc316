// A table of coefficients that tests need not run anything for.
#pragma once

#include "app/posterior/coefficients/coefficient_table.h"

namespace fedep {

// age has a deviation of 20, icu's column one of 0.5.
inline CoefficientTable small_table() {
  const Term age{.name = "age", .column = "age", .divisor = 20};
  const Term icu{.kind = TermKind::category,
                 .name = "unit=icu vs ward",
                 .column = "unit",
                 .level = "icu",
                 .reference = "ward",
                 .divisor = 0.5};
  return {.data = "heart_disease",
          .algorithm = "fed_ep",
          .round = 20,
          .rows = {{.name = "age", .mean = 0.5, .deviation = 0.25, .term = age, .unit = 0.05},
                   {.name = "unit=icu vs ward",
                    .mean = 0.4,
                    .deviation = 0.1,
                    .term = icu,
                    .unit = 2,
                    .figure_unit = 2},
                   {.name = "intercept", .mean = -1, .deviation = 0.1, .kind = RowKind::intercept}},
          .outcome = "died"};
}

}  // namespace fedep
