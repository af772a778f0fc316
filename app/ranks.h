// This program as one of several ranks: who speaks, and how all of them end where one fails.
#pragma once

#include <memory>
#include <string_view>

#include "app/failure.h"
#include "fedep/sim/ranks/ranks.h"

namespace fedep {

// Joins the ranks that a launcher started; null where it started one or there was none. All but the
// first keep quiet. What is no command (--help) the first rank alone is asked. Throws InputError for a
// command that several ranks cannot share.
std::unique_ptr<Ranks> join_ranks(std::string_view command);

// One failure ends all: says what it is, and on which rank. Where all fail alike, one of them speaks.
[[noreturn]] void end_ranks(const Ranks& ranks, const Failure& failure);

}  // namespace fedep
