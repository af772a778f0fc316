// Whether ranks can play one run to one machine's bits: the same program on the same data, by the same
// arithmetic. Compared before the first round.
//
//   std::vector<Fact> facts{{"recipe", to_toml(recipe)}, …};
//   append_arithmetic(facts, …);
//   const std::vector<std::string> differences = compare_ranks(ranks, facts, mixed_cpus);
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fedep/config/recipe.h"
#include "fedep/round/phase.h"
#include "fedep/sim/ranks/ranks.h"
#include "fedep/sim/task.h"

namespace fedep {

struct Fact {
  std::string name;
  std::string value;
  bool arithmetic = false;  // may differ where bits are given up
};

// The CPU, the BLAS kernel, the program's own bytes, and what one client's visit comes to.
std::vector<Fact> arithmetic_of(const Recipe& recipe, const std::vector<Phase>& phases, Task& task);

// Throws InputError, the same on every rank, for a fact that differs between ranks. With `mixed` what
// is arithmetic may differ: then gives a line for each such fact.
std::vector<std::string> compare_ranks(Ranks& ranks, std::span<const Fact> facts, bool mixed);

// Of what the smallest client that makes a step sends when a phase begins, for each method of the
// phases: equal arithmetic has equal ones.
std::uint64_t first_visit_hash(const Recipe& recipe, const std::vector<Phase>& phases, Task& task);

}  // namespace fedep
