// Which of a client's examples are its test set, where the data have none of their own. The choice
// depends on the client's id alone, neither on a run's seed nor on other clients, so that runs can
// be compared.
//
//   const std::vector<bool> test = held_out("ward-3", 50, 0.2);   // ten of them true
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fedep {

// fraction * examples, rounded; one always stays in training.
std::size_t held_out_count(std::size_t examples, double fraction);

// So many of them, drawn.
std::vector<bool> held_out(std::string_view client, std::size_t examples, double fraction);

// As above, for examples that belong together (stays of one patient): those with the same group are
// held out together or not at all, and never more than asked for.
std::vector<bool> held_out(std::string_view client, std::span<const std::uint32_t> groups,
                           double fraction);

// Groups by number, in order of first appearance; an example without one (an empty text) has a number
// of its own.
std::vector<std::uint32_t> numbered_groups(std::span<const std::string> groups);

}  // namespace fedep
