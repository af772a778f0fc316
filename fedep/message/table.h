// Tables whose rows have names: what `fedep list` prints and recipes choose from.
//
//   constexpr std::array kAlgorithms{Algorithm{.name = "fed_avg", …}, …};
//   const Algorithm& row = find_row("algorithm", kAlgorithms, "fed_epp");
//   -> InputError: unknown algorithm fed_epp; did you mean fed_ep? known: fed_avg, fed_ep
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fedep/message/error.h"
#include "fedep/message/nearest.h"

namespace fedep {

template <class Table>
std::vector<std::string_view> names_of(const Table& table) {
  std::vector<std::string_view> names;
  for (const auto& row : table) names.push_back(row.name);
  return names;
}

// Throws InputError that suggests the nearest name.
template <class Table>
const auto& find_row(std::string_view kind, const Table& table, std::string_view name) {
  for (const auto& row : table) {
    if (row.name == name) return row;
  }
  throw InputError(unknown_name(kind, name, names_of(table)));
}

// "cnn, linear or resnet18"
inline std::string alternatives(const std::vector<std::string_view>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " or " : ", ";
    text += names[i];
  }
  return text;
}

}  // namespace fedep
