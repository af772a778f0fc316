// Keeps a run that several ranks play. Rank 0 has the keeper that writes log and checkpoints; the
// others write the factors that live with them, and go on from what rank 0 goes on from.
//
//   RankKeeper keeper({ranks, sites, recipe, phases, layout, directory}, first ? &disk_keeper : nullptr);
#pragma once

#include <optional>

#include "fedep/round/run.h"
#include "fedep/sim/ranks/rank_sites.h"
#include "fedep/sim/ranks/ranks.h"
#include "fedep/store/run_directory.h"

namespace fedep {

// What is referred to must outlive the keeper.
struct RankKept {
  Ranks& ranks;
  RankSites& sites;
  const Recipe& recipe;
  const std::vector<Phase>& phases;
  const Layout& layout;
  const RunDirectory& directory;  // on a file system that all ranks share
};

class RankKeeper final : public RunKeeper {
 public:
  // `first`: rank 0's; null on all others.
  RankKeeper(const RankKept& run, RunKeeper* first) : run_(run), first_(first) {}

  std::optional<ServerState> begin() override;
  void write(const RoundReport& round) override;
  bool wants(std::int64_t completed, const Phase& phase, bool stop) const override;
  void keep(const ServerState& state, const Phase& phase, bool stop) override;
  void end(const ServerState& state, double seconds) override;
  std::int64_t goes_on_from() const override;

 private:
  void tell_what_is_kept();

  RankKept run_;
  RunKeeper* first_;
};

}  // namespace fedep
