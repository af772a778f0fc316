#include "fedep/sim/ranks/rank_keeper.h"

#include <utility>
#include <vector>

#include "fedep/store/checkpoint.h"
#include "fedep/store/run_keeper.h"

namespace fedep {
namespace {

struct NamedSite {
  std::uint64_t manifest;  // its index
  std::uint64_t client;
  std::int64_t round;
};

}  // namespace

// What rank 0's keeper has removed and written is there for all when this returns.
std::optional<ServerState> RankKeeper::begin() {
  std::optional<ServerState> state;
  if (first_ != nullptr) state = first_->begin();
  const std::int64_t round =
      values_of<std::int64_t>(run_.ranks.broadcast(bytes_of(state ? state->round : -1))).at(0);
  if (first_ == nullptr && round >= 0) {
    Checkpoint checkpoint = read_checkpoint(run_.directory.checkpoint(round), run_.layout);
    run_.sites.restore(checkpoint.sites);
    state = std::move(checkpoint.state);
  }
  tell_what_is_kept();
  return state;
}

// Where states are files, whoever replaces one must know which of them checkpoints name.
void RankKeeper::tell_what_is_kept() {
  if (run_.sites.is_shared()) {
    std::vector<NamedSite> named;
    for (std::size_t i = 0; i < run_.sites.kept().size(); ++i) {
      for (const auto& [client, round] : run_.sites.kept()[i]) named.push_back({i, client, round});
    }
    named = values_of<NamedSite>(run_.ranks.broadcast(bytes_of(std::span<const NamedSite>(named))));
    std::vector<SiteManifest> manifests;
    for (const NamedSite& site : named) {
      manifests.resize(std::size_t(site.manifest) + 1);
      manifests.back()[site.client] = site.round;
    }
    if (first_ == nullptr) run_.sites.keep_only(manifests);
  }
  run_.ranks.wait_for_all();
}

void RankKeeper::write(const RoundReport& round) {
  if (first_ != nullptr) first_->write(round);
}

bool RankKeeper::wants(std::int64_t completed, const Phase& phase, bool stop) const {
  // Rank 0's may also keep what rows of a table share, which is nobody else's business.
  if (first_ != nullptr) return first_->wants(completed, phase, stop);
  return is_checkpoint_due(run_.recipe, run_.phases, completed, phase, stop);
}

void RankKeeper::keep(const ServerState& state, const Phase& phase, bool stop) {
  const bool is_due = is_checkpoint_due(run_.recipe, run_.phases, state.round, phase, stop);
  if (first_ != nullptr) {
    first_->keep(state, phase, stop);
  } else if (phase.stateful() && run_.recipe.checkpoint.factors) {
    run_.sites.save();  // with rank 0's, which then names all
  }
  if (is_due) tell_what_is_kept();
}

void RankKeeper::end(const ServerState& state, double seconds) {
  if (first_ != nullptr) first_->end(state, seconds);
}

std::int64_t RankKeeper::goes_on_from() const {
  return first_ != nullptr ? first_->goes_on_from() : 0;
}

}  // namespace fedep
