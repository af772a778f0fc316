// `fedep coefficients RUN|CHECKPOINT`: what a linear model on a table has learned, one row per term, as text, CSV,
// LaTeX or JSON, and as a forest plot.
#pragma once

#include "app/command.h"
#include "app/posterior/coefficients/coefficient_formats.h"
#include "app/posterior/coefficients/coefficient_table.h"

namespace fedep {

void add_coefficients_command(Command& app, int& exit_code);

}  // namespace fedep
