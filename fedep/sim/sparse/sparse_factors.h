// Whether clients' factors are of the weights that their examples touch alone. With sparse features
// (StackOverflow's words) those are few, and stores keep no zeros (round/site_store.h): then a factor
// costs what its client knows, not what the model has. Which settings give it numbers everywhere is said
// here, in words, for checkpoint.sparse and for plans of memory and disk.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "fedep/config/recipe.h"
#include "fedep/round/phase.h"
#include "fedep/sim/task.h"

namespace fedep {

// Marks the phases whose factors refer to q's means (round/mean_shelf.h): checkpoint.sparse is asked
// for, and the method has one precision for all weights, which data that say nothing move too.
void mark_shared_means(const Recipe& recipe, std::vector<Phase>& phases);

// Of a stateful phase: the setting that gives factors numbers everywhere, and the way out; empty: none
// does.
std::string dense_factor_reason(const Recipe& recipe, const Phase& phase, std::size_t index,
                                const Task& task);

// Throws InputError where checkpoint.sparse is asked for and cannot be had.
void check_sparse_factors(const Recipe& recipe, const std::vector<Phase>& phases, const Task& task);

// Throws InputError if they are asked for on a device that keeps all numbers of a factor.
void refuse_sparse_factors(const Recipe& recipe, std::string_view device);

// For each phase how many weights a client's factor has numbers for, on average over a few clients whose
// examples are looked at: all weights where factors are dense, 0 where there are none.
std::vector<std::size_t> weights_touched(const Recipe& recipe, const std::vector<Phase>& phases,
                                         const Task& task);

}  // namespace fedep
