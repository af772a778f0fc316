// Runs of one command (a table's, a sweep's) dealt out among ranks. Groups of ranks play theirs one
// after the other and hear nothing of one another until all runs are over.
//
//   PlanDeal deal({.ranks = ranks}, 2, plans);         // two ranks play a run together
//   for (std::size_t i = 0; i < plans.size(); ++i) {
//     if (deal.is_mine(i)) deal.play(i, [&] { return run(plans[i], deal.group()); });
//   }
//   if (deal.wait_for_all(false) == 0) …               // now every run is there
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "app/command.h"
#include "app/failure.h"
#include "app/reproduce/reproduce_plan.h"
#include "app/run/run_options.h"
#include "fedep/sim/ranks/ranks.h"

namespace fedep {

struct DealOptions {
  std::size_t ranks_per_run = 1;
  bool mixed_cpus = false;
};
void add_deal_options(Command& command, DealOptions& options);

class PlanDeal {
 public:
  // `how` is what all runs are told, with all the ranks there are; without ranks this process plays all
  // runs. Throws InputError, on every rank, where ranks have different plans, do not see the same folder
  // or would not come to the same bits, or where more are to play a run than there are.
  PlanDeal(const RunRecipeOptions& how, std::size_t ranks_per_run, std::span<const Plan> plans);

  bool is_mine(std::size_t plan) const { return groups_of_[plan] == group_number_; }
  // Those that play a run together; null: each of them is one process's.
  Ranks* group() const { return group_.get(); }
  // This process writes what its runs leave.
  bool leads() const { return group_ == nullptr || group_->is_first(); }
  // This process prints what all runs come to.
  bool speaks() const { return ranks_ == nullptr || ranks_->is_first(); }
  // "ranks 2 and 3": who plays it.
  std::string players(std::size_t plan) const;

  // What the group's first rank finds of a run, told to all of the group.
  struct Found {
    bool begun = false;
    bool finished = false;
  };
  Found find(const Plan& plan) const;

  // Plays a run, and gives what it gives: false after a wish to stop. Where it is one rank's of several,
  // what it throws ends this run alone, and is told at once and when all are over.
  bool play(std::size_t plan, const std::function<bool()>& run);

  // Until all have played theirs. The exit code: 130 where one was asked to stop; for who prints what all
  // come to, that of a run that failed, and then it says which did.
  int wait_for_all(bool stopped) const;

 private:
  std::string failure_line(std::size_t plan) const;
  std::string own_failures() const;

  Ranks* ranks_;
  std::size_t ranks_per_run_;
  std::unique_ptr<Ranks> group_;
  std::size_t group_number_ = 0;
  std::vector<std::size_t> groups_of_;     // by plan
  std::vector<std::string> names_;         // by plan, as what failed is told
  std::map<std::size_t, Failure> failed_;  // of this rank's, by plan
};

}  // namespace fedep
