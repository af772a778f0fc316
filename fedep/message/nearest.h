// "Did you mean …": the nearest of the names that exist, for errors about one that does not.
//
//   const std::vector<std::string_view> names{"fed_avg", "fed_ep"};
//   throw InputError(unknown_name("algorithm", "fed_epp", names));
//   -> unknown algorithm fed_epp; did you mean fed_ep? known: fed_avg, fed_ep
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace fedep {

// Fewest insertions, deletions, substitutions and swaps of neighbours that turn one word into the
// other, no letter touched twice. Case does not count, nor does - against _.
std::size_t edit_distance(std::string_view a, std::string_view b);

// The candidate a person most likely meant, the first of equals; none if no candidate is near. A
// word that begins with a candidate, or the other way round, is near: batch_size means batch.
std::optional<std::string_view> nearest(std::string_view word,
                                        std::span<const std::string_view> candidates);

// "; did you mean X?" or, where nothing is near, nothing.
std::string suggestion(std::string_view word, std::span<const std::string_view> candidates);

// One line for a name that a registry does not have.
std::string unknown_name(std::string_view kind, std::string_view word,
                         std::span<const std::string_view> candidates);

// A name as an error shows it: on one line, quoted unless it is a plain word.
std::string shown(std::string_view name);
// "age, "weight, kg" and 3 more": the first `most` of them.
std::string shown_list(std::span<const std::string> names, std::size_t most);

}  // namespace fedep
