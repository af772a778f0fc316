#include "app/report/told_coefficients.h"

#include <algorithm>
#include <system_error>

#include "app/posterior/coefficients/coefficient_formats.h"
#include "app/posterior/coefficients/coefficient_table.h"
#include "app/posterior/saved_posterior.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

namespace fs = std::filesystem;

bool has_checkpoint(const fs::path& run) {
  try {
    checkpoint_of(run);
    return true;
  } catch (const InputError&) {
    return false;
  }
}

// Clients by their shares, and the prior, which the table has first.
std::vector<CoefficientReport::Share> shares_of(const CoefficientTable& table) {
  std::vector<CoefficientReport::Share> out;
  for (std::size_t i = 0; i < table.shares.size(); ++i) {
    out.push_back({table.share_names[i], table.shares[i]});
  }
  if (out.empty()) return out;
  std::rotate(out.begin(), out.begin() + 1, out.end());
  std::stable_sort(out.begin(), out.end() - 1,
                   [](const auto& a, const auto& b) { return a.share > b.share; });
  return out;
}

}  // namespace

std::optional<CoefficientReport> told_coefficients(const fs::path& run, const Recipe& recipe) {
  std::error_code ignored;
  const bool is_table = fs::exists(run / "features.json", ignored);
  if (recipe.model.name != "linear" || !is_table || !has_checkpoint(run)) return std::nullopt;
  const CoefficientTable table = read_coefficients(run, "");
  CoefficientReport report{.figure = forest_of(table), .shares_note = table.shares_note};
  if (report.figure.rows.empty()) return std::nullopt;  // an intercept alone
  for (const Coefficient& row : table.rows) {
    if (row.kind != RowKind::spread) continue;
    const Effect spread = exponential(effect_of(table, row, EffectUnit::own));
    report.spreads.push_back({spread_name(row), spread.estimate, spread.interval});
  }
  report.shares = shares_of(table);
  return report;
}

}  // namespace fedep
