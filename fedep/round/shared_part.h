// What of a client's factor is shares of rounds' means (mean_shelf.h), as numbers.
//
//   SharedPart(round, sites, state.shares).add_to(factor.eta().span(), 0, 1);
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "fedep/round/mean_shelf.h"
#include "fedep/round/site_store.h"
#include "fedep/round/task.h"

namespace fedep {

class SharedPart {
 public:
  // The round may be the one that is played, of which the shelf has nothing yet. All must outlive this.
  // Throws InputError for shares of rounds that have no mean.
  SharedPart(const RoundTask& round, SiteStore& sites, std::span<const MeanShare> shares);

  // Adds `times` Σ share μ to the weights from `begin` on, summed in double.
  void add_to(std::span<float> weights, std::size_t begin, double times) const;

 private:
  std::span<const MeanShare> shares_;
  std::vector<MeanShelf::Mean> held_;
  std::vector<const float*> means_;  // of shares_
};

// Shares of who makes so large a part of the way from `before` to `after`, which has all of before's.
std::vector<MeanShare> part_way(const std::vector<MeanShare>& before,
                                const std::vector<MeanShare>& after, double part);
// Those that are 0 go.
void drop_nothing(std::vector<MeanShare>& shares);

}  // namespace fedep
