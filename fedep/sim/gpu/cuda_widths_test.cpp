#include "fedep/sim/gpu/cuda_widths.h"

#include <gtest/gtest.h>

namespace fedep {
namespace {

std::vector<std::size_t> all_of(const CohortWidths& widths) {
  std::vector<std::size_t> clients;
  for (std::size_t i = 0; i < widths.size(); ++i) clients.push_back(widths[i]);
  return clients;
}

TEST(CohortWidths, HalveDownToOne) {
  using Clients = std::vector<std::size_t>;
  EXPECT_EQ(all_of(CohortWidths(1)), (Clients{1}));
  EXPECT_EQ(all_of(CohortWidths(5)), (Clients{5, 3, 2, 1}));
  EXPECT_EQ(all_of(CohortWidths(100)), (Clients{100, 50, 25, 13, 7, 4, 2, 1}));
}

TEST(CohortWidths, TheNarrowestHasRoomAndTheNextHasNot) {
  const CohortWidths widths(37);
  for (std::size_t active = 0; active <= 37; ++active) {
    const std::size_t i = widths.narrowest(active);
    EXPECT_GE(widths[i], active);
    if (i + 1 < widths.size()) {
      EXPECT_LT(widths[i + 1], active);
    }
  }
}

// Three steps of four clients with two rows each: all clients; then the first two (of the second
// only its second row); then nobody.
TEST(StepWidths, LeaveOutNobodyWithABatch) {
  CohortOrder order;
  order.clients = 8;
  order.counts = {1, 1, 1, 1, 1, 1, 1, 0,  //
                  0, 1, 0, 1, 0, 0, 0, 0,  //
                  0, 0, 0, 0, 0, 0, 0, 0};
  EXPECT_EQ(step_widths(CohortWidths(4), order, 3, 2), (std::vector<std::size_t>{0, 1, 2}));
  EXPECT_EQ(step_widths(CohortWidths(8), order, 2), (std::vector<std::size_t>{0, 1}));
}

}  // namespace
}  // namespace fedep
