// How the program says what it thinks of a run (fedep/store/verdict.h), and its exit code for one
// that is not to be trusted.
#pragma once

#include <string>

#include "fedep/store/json.h"
#include "fedep/store/verdict.h"

namespace fedep {

// Finished, not to be trusted. What failed (1), was wrong (2) or was interrupted (130) says that.
inline constexpr int kNotTrusted = 3;

int exit_code_of(const Verdict& verdict);

// "the run is not to be trusted: …", "the run was not judged: …", or nothing.
std::string trust_text(const Verdict& verdict);

// {"trust": "yes", "not judged" or "no", "why", "helps"}, the latter two where there is something.
Json trust_json(const Verdict& verdict);

}  // namespace fedep
