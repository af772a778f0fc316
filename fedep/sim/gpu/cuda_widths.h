// How many of a cohort's clients a step goes through: all, or half of them, or half of that, … Where
// clients come in the order of their sizes, those that still have batches are the first.
//
//   CohortWidths widths(100);                              // 100, 50, 25, 13, 7, 4, 2, 1 clients
//   widths[widths.narrowest(30)] == 50
//   step_widths(widths, order, 7)                          // of the first 7 steps
#pragma once

#include <cstddef>
#include <vector>

#include "fedep/cuda/device/device_data.h"

namespace fedep {

class CohortWidths {
 public:
  explicit CohortWidths(std::size_t clients);

  std::size_t size() const { return clients_.size(); }
  std::size_t operator[](std::size_t width) const { return clients_[width]; }
  // The index of the narrowest with room for the first `active` clients.
  std::size_t narrowest(std::size_t active) const;

 private:
  std::vector<std::size_t> clients_;
};

// The narrowest widths that leave out no client with a batch; `at_once` rows of the order are one
// client's.
std::vector<std::size_t> step_widths(const CohortWidths& widths, const CohortOrder& order,
                                     std::size_t steps, std::size_t at_once = 1);

}  // namespace fedep
