// `fedep bench round RECIPE`: what a round costs, and how far from what the machine could do.
#pragma once

#include <string>
#include <vector>

#include "app/bench/bench_rounds.h"
#include "app/bench/step_cost.h"
#include "app/command.h"

namespace fedep {

// One row of the table: times of a plan and what its steps cost at least.
struct BenchRow {
  RoundTimes times;
  StepCost cost;
  double batch = 0;  // examples of a step
};

std::string bench_table(const std::vector<BenchRow>& rows);
std::string bench_json(const std::vector<BenchRow>& rows);

void add_bench_command(Command& app, int& exit_code);

}  // namespace fedep
