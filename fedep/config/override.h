// `--set section.key=value`, applied to a recipe's TOML tree before it is read, so that an override
// is checked like the file and errors name it. For sources only: toml++ is a heavy header.
//
//   server.optimizer.lr=0.5      values are TOML
//   server.damping=1/K           a string may go without quotes
//   phase.1.rounds=10            the second phase
//   phase.inference.alpha=0.04   every phase that has [phase.inference]
#pragma once

#include <string>
#include <string_view>

#include <toml++/toml.h>

namespace fedep {

// What the source path of an overridden node begins with.
inline constexpr std::string_view kOverrideMark = "--set ";

// Throws InputError for text that is no override, or that sets what cannot be there.
void apply_override(toml::table& recipe, std::string_view override_text);

// A value as an error shows it: "ten", 1.5, a table.
std::string described(const toml::node& node);

}  // namespace fedep
