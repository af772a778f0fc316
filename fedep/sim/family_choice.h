// Which family a phase's messages have, where the recipe leaves it open: full for linear models of
// tables up to 500 weights, where everything else bears it, otherwise what the inference method has. It
// never depends on the device.
//
//   const FamilyDecision decision = decide_families(recipe, *task);
//   plan_phases(decision.recipe, …);
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "fedep/config/recipe.h"
#include "fedep/sim/task.h"

namespace fedep {

inline constexpr std::size_t kMostWeightsUnasked = 500;
inline constexpr std::size_t kMostWeightsOfAMatrix = 2000;

struct FamilyDecision {
  // Where a phase's family is full, that and its method are written out, and where the method draws, a
  // cooldown of the steps, unless the recipe has one or a schedule of the server's rate.
  Recipe recipe;
  // Of every phase that infers a distribution: its family, and why.
  std::vector<std::string> reasons = {};
};

// Throws InputError for a family that is asked for and cannot be had, naming what stands in its way, for a
// phase that needs a method's name, and for a schedule of an alpha that the method does not read.
FamilyDecision decide_families(const Recipe& recipe, const Task& task);

// Families, and cooldowns of methods that draw, that `given` leaves open are those of a run whose directory
// has the recipe `there`. Families that that one leaves open too are their methods', as all were before
// there was a choice.
Recipe with_families_of(const Recipe& there, Recipe given);
// For a run that goes on: with_families_of(), and what is decided for phases that it did not have.
Recipe decided_as_before(const Recipe& there, const Recipe& given, Recipe decided);

// Throws InputError if a phase's messages have full precision matrices, which this device does not hold.
void refuse_full_family(const Recipe& decided, std::string_view device);

}  // namespace fedep
