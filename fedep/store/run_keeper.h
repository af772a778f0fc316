// A run kept in its directory: the log, line by line; checkpoints, of which the newest stay; clients'
// factors. It is brought back from the latest checkpoint that it can go on from.
//
//   DiskKeeper keeper({recipe, phases, layout, place.sites(), directory}, header, resume);
//   play_run({recipe, phases, population, layout, place}, initial_weights, hooks, &keeper);
//   keeper.history().rounds;
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fedep/config/recipe.h"
#include "fedep/message/layout.h"
#include "fedep/round/diagnosis/start_left.h"
#include "fedep/round/phase.h"
#include "fedep/round/run.h"
#include "fedep/round/site_store.h"
#include "fedep/store/checkpoint.h"
#include "fedep/store/log/history.h"
#include "fedep/store/log/run_log.h"
#include "fedep/store/own_checkpoint.h"
#include "fedep/store/run_directory.h"

namespace fedep {

class SharedBurnIn;

// What is referred to must outlive the keeper.
struct KeptRun {
  const Recipe& recipe;
  const std::vector<Phase>& phases;
  const Layout& layout;
  SiteStore& sites;
  const RunDirectory& directory;
  std::function<void(std::string_view)> tell = {};  // gets a line on what is taken as it is
  // Where it is given, the log also says what is left of the precision that factors began with.
  const Population* population = nullptr;
};

// A checkpoint is whole and safe before the run relies on it, and so is what it relies on: first the
// log's rounds are brought to the disk, then clients' factors, last the checkpoint that names them.
// What an older one needed goes only after that. So whenever the power fails, the latest checkpoint
// that is there can be gone on from.
class DiskKeeper final : public RunKeeper {
 public:
  // Without `resume`, or if there is no checkpoint yet, the run begins, with `header`.
  DiskKeeper(const KeptRun& run, RunHeader header, bool resume);

  // After so many rounds the state is kept for other runs too.
  void share(const SharedBurnIn& burn_in, std::vector<std::int64_t> after);

  // Of the whole run so far, starts before this one included.
  const History& history() const { return history_; }

  std::optional<ServerState> begin() override;
  void write(const RoundReport& round) override;
  bool wants(std::int64_t completed, const Phase& phase, bool stop) const override;
  void keep(const ServerState& state, const Phase& phase, bool stop) override;
  void end(const ServerState& state, double seconds) override;
  std::int64_t goes_on_from() const override;

 private:
  bool is_shared_after(std::int64_t completed) const;
  bool can_go_on_from(const ServerState& state, bool has_factors) const;
  std::int64_t anchor() const;

  std::optional<double> start_left_after(const RoundRecord& record);

  std::optional<OwnCheckpoint> read_latest();
  OwnCheckpoint read_one(std::int64_t round) const;
  void go_on_from(const OwnCheckpoint& own);
  void write_checkpoint_of(const ServerState& state, const Phase& phase);
  void prune();
  void remove_all_but_kept();

  KeptRun run_;
  RunHeader header_;
  bool resume_;
  std::string recipe_;
  const SharedBurnIn* burn_in_ = nullptr;
  std::vector<std::int64_t> share_after_;
  History history_;
  std::optional<StartLeft> start_;  // of the phase that is played
  std::optional<RunLog> log_;       // nothing if the log is whole, and not to be touched
  struct Kept {
    SiteManifest sites;
    bool goes_on = false;  // can be gone on from
  };
  std::map<std::int64_t, Kept> kept_;  // checkpoints, by their rounds
};

// Whether the state after so many rounds, the last of them in `phase`, becomes a checkpoint; `stop`:
// nobody plays on for now.
bool is_checkpoint_due(const Recipe& recipe, const std::vector<Phase>& phases,
                       std::int64_t completed, const Phase& phase, bool stop);

}  // namespace fedep
