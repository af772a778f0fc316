// A forest plot as the page gets it: numbers to draw by, and the texts beside them as draw_forest() writes them.
#pragma once

#include <optional>

#include "fedep/page/report/coefficient_report.h"
#include "fedep/store/json.h"

namespace fedep {

// {"title", "note", "axis", "caption", "ratio", "rows": [{"name", "group", "estimate", "low", "high", "text"}…]}: of
// ratios, estimate, low and high are logarithms, and the texts are ratios. Low and high are null without
// an interval; a row whose estimate is not finite has null for it, and a dash for a text. "spreads": [{"name", "text"}…],
// "shares": [{"name", "share"}…] and "shares_note" go with it. Null: there are none.
Json forest_json(const std::optional<CoefficientReport>& report);

}  // namespace fedep
