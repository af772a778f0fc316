#include "fedep/inference/rows/glm_rows.h"

#include <string_view>

#include <fmt/format.h>

#include "fedep/message/check.h"

namespace fedep {
namespace {

bool may_be(GlmOutcome outcome, double y) {
  if (outcome == GlmOutcome::yes_no) return y == 0 || y == 1;
  if (outcome == GlmOutcome::count) return y >= 0 && std::isfinite(y) && y == std::floor(y);
  return std::isfinite(y);
}

std::string_view wanted(GlmOutcome outcome) {
  if (outcome == GlmOutcome::yes_no) return "0 or 1";
  return outcome == GlmOutcome::count ? "a whole number, zero or more" : "finite";
}

}  // namespace

void check_glm_rows(const GlmRows& rows) {
  const std::string who = fmt::format("rows of client {}", rows.client);
  const std::size_t n = rows.size();
  check_same_size(who, "x", n * rows.columns, rows.x.size());
  if (!rows.offset.empty()) check_same_size(who, "offset", n, rows.offset.size());
  if (rows.outcome == GlmOutcome::number) check_positive(who, "noise", rows.noise);
  for (std::size_t i = 0; i < n; ++i) {
    if (!may_be(rows.outcome, rows.y[i])) {
      fail(who, fmt::format("the outcome of row {}", i), wanted(rows.outcome),
           fmt::format("{}", rows.y[i]));
    }
    for (const double x : rows.row(i)) {
      if (!std::isfinite(x)) fail(who, fmt::format("row {}", i), "finite", fmt::format("{}", x));
    }
    if (!rows.offset.empty()) {
      check_finite(who, fmt::format("the offset of row {}", i), rows.offset[i]);
    }
  }
}

}  // namespace fedep
