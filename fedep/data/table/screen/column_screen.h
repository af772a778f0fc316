// Whether the values that clients have in one column can be of one kind: a row with an age of 1e6, a
// client that has pounds where others have kilograms, a column of codes. Judged by what clients
// report of it (column_summary.h), each against the others; no row is needed.
//
//   const ColumnScreen screen = screen_column(summaries);   // one per client
//   value < screen.low || value > screen.high               // a value that does not fit
//   screen.strangers                                        // clients none of whose values do
//
// The yardstick is the others' median and the distances from it to their 10 % and 90 % quantiles,
// whose ratio says how skewed the column is: distances are measured on the scale on which it would
// not be (Tukey's g), so that the largest of a thousand lognormal values is as near as that of a
// thousand Gaussian ones. The fewer rows or, where clients differ much, the fewer clients there are
// to tell the tail by, the longer it may be.
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "fedep/data/table/screen/column_summary.h"

namespace fedep {

struct Stranger {
  std::size_t client = 0;
  std::string why;  // "its median is 176, that of the others 80, as if in other units (2.2 times)"

  bool operator==(const Stranger&) const = default;
};

struct ColumnScreen {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  std::vector<Stranger> strangers = {};  // by client

  // Null if it is none.
  const Stranger* find_stranger(std::size_t client) const;
  bool is_stranger(std::size_t client) const { return find_stranger(client) != nullptr; }
};

// Of fewer than three clients with values nobody is a stranger: there is no majority.
ColumnScreen screen_column(std::span<const ColumnSummary> clients);

}  // namespace fedep
