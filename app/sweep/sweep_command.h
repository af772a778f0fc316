// `fedep sweep RECIPE --grid key=a,b,c --seeds 1,2,3`: the recipe with every combination of some settings, each
// with every seed, and one table of their last scores, mean and standard deviation over seeds.
//
// Runs go to OUT/<settings>/seed-<seed>; those that are over are not played again, so that the same command goes on
// after a stop. OUT/sweep.json has what the table has, and every run's own scores:
//
//   {"recipe", "grid": {key: [value…]}, "seeds": [1, 2, 3],
//    "cells": [{"settings": {key: value}, "scores": {name: {"mean", "sd", "seeds"}},
//               "runs": [{"seed", "run", "scores": {…}, "trust"}]}]}
#pragma once

#include <memory>

#include "app/command.h"
#include "fedep/sim/ranks/ranks.h"

namespace fedep {

// `ranks`: that share the runs, once there are some.
void add_sweep_command(Command& app, int& exit_code, const std::unique_ptr<Ranks>& ranks);

}  // namespace fedep
