// `--set section.key=value`, applied to a recipe's TOML tree before it is read, so that an override
// is checked like the file and errors name it. For sources only: toml++ is a heavy header.
//
//   server.optimizer.lr=0.5      values are TOML
//   server.damping=1/K           a string may go without quotes
//   phase.1.rounds=10            the second phase
//   phase.inference.alpha=0.04   every phase that has [phase.inference]
//
// A recipe's own table [set] has the same keys, as "phase.1.rounds" = 10 or phase.1.rounds = 10.
#pragma once

#include <string>
#include <string_view>

#include <toml++/toml.h>

namespace fedep {

// What the source path of an overridden node begins with.
inline constexpr std::string_view kOverrideMark = "--set ";

// Throws InputError for text that is no override, or that sets what cannot be there.
void apply_override(toml::table& recipe, std::string_view override_text);

// Takes [set] out of the recipe and applies its keys, in the order of its lines.
void apply_set(toml::table& recipe);

// Where a value is written: "recipe.toml:12", or the override, or only `source`, where it is not
// written anywhere.
std::string place(const toml::node& node, const std::string& source);

// What is wrong with a text that is no TOML, on one line: toml++ cites the text as it is.
std::string problem_of(const toml::parse_error& error);

// A value as an error shows it: "ten", 1.5, a table.
std::string described(const toml::node& node);

}  // namespace fedep
