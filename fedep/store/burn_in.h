// The first rounds that runs have in common, played once. The rows of a table begin with the same
// FedAvg phase; whoever plays it first keeps the state, and the others begin there.
//
//   const SharedBurnIn burn_in("run/burn-in", recipe, origin, layout, tell);
//   const std::vector<RoundRecord> rounds = burn_in.adopt(directory, header);  // now the directory's own
//   DiskKeeper keeper(parts, header, resume || !rounds.empty());
//   keeper.share(burn_in, {401});  // keep()s the state after so many
//
// A state is two files, named by a hash of all that it depends on and by its round:
// <hash>-401.jsonl, the lines of its rounds, and, written after it, <hash>-401.safetensors, an
// ordinary checkpoint. Each is replaced whole, so that processes may keep the same state at once.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fedep/config/recipe.h"
#include "fedep/message/layout.h"
#include "fedep/round/phase.h"
#include "fedep/round/server_state.h"
#include "fedep/store/log/history.h"
#include "fedep/store/run_directory.h"

namespace fedep {

// All that the first `rounds` rounds of a recipe depend on, as a recipe of one phase: two recipes
// for which it is the same play the same rounds and log the same scores. None if clients keep
// factors in that phase, or if it is shorter.
std::optional<Recipe> burn_in_of(const Recipe& recipe, std::int64_t rounds);

class SharedBurnIn {
 public:
  // `origin`: what the bits depend on beside the recipe (data, program, device), in lines.
  // `tell` gets a line for what is adopted, and for what is wrong with files that are not.
  // `layout` must outlive this.
  SharedBurnIn(std::filesystem::path folder, const Recipe& recipe, std::string origin,
               const Layout& layout, std::function<void(std::string_view)> tell);

  // Makes the latest state that is kept the latest checkpoint of `directory`, and its rounds, which
  // are returned, that run's log. Nothing if there is none, or if the run is there already.
  // A file that is damaged or that belongs to other rounds is passed over.
  std::vector<RoundRecord> adopt(const RunDirectory& directory, const RunHeader& header) const;

  // Keeps the state after a round of the first phase, with the run's rounds until then. A folder that
  // cannot be written is told of and otherwise harmless.
  void keep(const ServerState& state, const Phase& phase,
            std::span<const RoundRecord> rounds) const;

 private:
  struct Kept {
    ServerState state;
    std::vector<std::string> slots;
    std::vector<RoundRecord> rounds;
  };

  bool can_share(std::int64_t rounds) const;
  std::string depends_on(std::int64_t rounds) const;
  std::filesystem::path file(std::int64_t rounds, std::string_view suffix) const;
  std::vector<std::int64_t> kept_rounds() const;
  Kept read(std::int64_t rounds) const;  // throws InputError

  std::filesystem::path folder_;
  Recipe recipe_;
  std::string origin_;
  const Layout& layout_;
  std::function<void(std::string_view)> tell_;
  std::string hash_;
};

}  // namespace fedep
