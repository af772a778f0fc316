// What a run's log says of whether its posterior may be used. Whoever shows one asks here:
//
//   const Verdict verdict = verdict_of(recipe, read_history(run / "log.jsonl"));
//   if (verdict.trust == Trust::none) say("not to be trusted: {}", to_text(verdict));
//
// Judged is the phase that the last round belongs to. A run that diverged, whose q is improper or has
// not converged (round/diagnosis/convergence.h) is not to be trusted. A point estimate is judged for divergence
// alone; a run shorter than two windows, and one whose rates fell until its end, is not judged
// for convergence. Recipes with a `table` are played as the paper played them, and not judged at all.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "fedep/config/recipe.h"
#include "fedep/message/gaussian.h"
#include "fedep/store/log/history.h"

namespace fedep {

enum class Trust {
  full,        // nothing speaks against it
  not_judged,  // nobody can tell
  none,        // not to be trusted
};

struct Verdict {
  Trust trust = Trust::full;
  std::string why = {};  // in words, with numbers; empty where trust is full
  std::string key = {};  // what to change in the recipe, as a sentence; empty where nothing helps

  bool operator==(const Verdict&) const = default;
};

// Of the rounds in `history`, which may be the first of a run: `over` says that no others follow, and
// `improper` how many coordinates of q have no positive precision.
Verdict verdict_of(const Recipe& recipe, const History& history, bool over, std::int64_t improper);
// The same of a whole log, which says both.
Verdict verdict_of(const Recipe& recipe, const History& history);

// Whether the log says that the run ended: after all rounds, or where stop.converged let it end.
bool is_finished(const Recipe& recipe, const History& history);

// "q moved by 0.31 deviations …: more rounds (phase.1.rounds)"; nothing where trust is full.
std::string to_text(const Verdict& verdict);
// "yes", "not judged", "no".
std::string_view word_of(Trust trust);

// Coordinates without a positive, finite precision; in the full family: directions.
std::int64_t improper_coordinates(const Message& q);

}  // namespace fedep
