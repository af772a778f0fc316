// Why a posterior's deviations are told to nobody: what the algorithm would have inferred was set, scaled,
// clipped or replaced, or cannot be inverted. Every command and the page ask here, and whoever has one
// more reason gives a list in withheld.cpp one more line.
//
//   const std::string why = why_withheld({.recipe = recipe, .phase = 1, .round = 40, .rounds = &rounds});
//   if (!why.empty()) say("There are no intervals: {}.\n", why);
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "fedep/config/recipe.h"
#include "fedep/store/log/history.h"

namespace fedep {

struct PosteriorFacts {
  const Recipe& recipe;
  std::size_t phase = 0;   // that the posterior belongs to, one that infers
  std::int64_t round = 0;  // completed
  const std::vector<RoundRecord>* rounds = nullptr;  // of its log; null: there is none
  bool of_rounds = true;  // precisions are what the phase's rounds made of them
  // Why its run is not to be trusted (store/verdict.h); empty: it may be.
  std::string distrust = {};
  bool proper = true;
  bool full = false;           // its precision is a matrix,
  double condition = 1;        // of this condition number
  double least_precision = 1;  // of a weight
};

// One sentence without its full stop, with the key to change; empty: deviations may be told.
std::string why_withheld(const PosteriorFacts& facts);

}  // namespace fedep
