#include "app/report/told_coefficients.h"

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

}  // namespace

std::optional<ForestFigure> told_coefficients(const fs::path& run, const Recipe& recipe) {
  std::error_code ignored;
  const bool is_table = fs::exists(run / "features.json", ignored);
  if (recipe.model.name != "linear" || !is_table || !has_checkpoint(run)) return std::nullopt;
  ForestFigure figure = forest_of(read_coefficients(run, ""));
  if (figure.rows.empty()) return std::nullopt;  // an intercept alone
  return figure;
}

}  // namespace fedep
