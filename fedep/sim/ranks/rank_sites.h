// Clients' factors of a run that several ranks play: each lives where its client was last played,
// and all ranks know where. Saving is done by all of them together.
//
//   RankSites sites(ranks, *own);                   // `own`: what this rank has
//   sites.bring(placed);                            // factors that are needed elsewhere travel
//   sites.settled(round, {{key, rank}, …});         // on every rank the same
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "fedep/round/site_store.h"
#include "fedep/sim/ranks/ranks.h"

namespace fedep {

// A client and the rank that plays it.
struct PlacedClient {
  std::uint64_t client = 0;
  std::size_t rank = 0;
};

class RankSites final : public SiteStore {
 public:
  // Both must outlive this.
  RankSites(Ranks& ranks, SiteStore& own) : ranks_(ranks), own_(own) {}

  // What this rank's own visits read and propose to.
  SiteStore& own() { return own_; }

  // Where a client's factor is; nothing for one that has none.
  std::optional<std::size_t> home(std::uint64_t client) const;
  // Brings factors to where their clients are played. All ranks together. In two parts: in between
  // nobody may ask for those that travel.
  void begin_bringing(std::span<const PlacedClient> clients);
  void end_bringing();
  void bring(std::span<const PlacedClient> clients) {
    begin_bringing(clients);
    end_bringing();
  }
  // These clients' proposals have become their states, each on its rank.
  void settled(std::int64_t round, std::span<const PlacedClient> clients);

  // Of clients that live here.
  std::optional<SiteState> get(std::uint64_t client) const override;
  std::optional<SiteState> proposed(std::uint64_t client) const override;
  void propose(std::uint64_t client, std::int64_t round, SiteState state) override;
  void propose_stored(std::uint64_t client, std::int64_t round, StoredSite state) override {
    own_.propose_stored(client, round, std::move(state));
  }
  void settle(std::int64_t round, std::span<const std::uint64_t> taken) override;
  void look(std::uint64_t client, const std::function<void(const StoredSite&)>& at) const override {
    own_.look(client, at);
  }

  void clear() override;
  // Every rank has all of them, and rank 0 writes them.
  MeanShelf& means() override { return own_.means(); }
  // All ranks together: when this returns, every rank's states are safe, and the manifest names all.
  SiteManifest save() override;
  // Deals the states out, and reads this rank's.
  void restore(const SiteManifest& manifest) override;
  // On rank 0 removes what is not named; what another rank still needs is kept.
  void keep_only(std::span<const SiteManifest> manifests) override;
  std::size_t visited() const override { return manifest_.size(); }
  bool in_memory() const override { return own_.in_memory(); }
  bool is_shared() const override { return own_.is_shared(); }
  bool is_elsewhere(std::uint64_t client) const override;
  void add_up(std::span<std::int64_t> sum) const override { ranks_.sum(sum); }
  double largest(double here) const override;

  // What keep_only() was last given: ranks whose states are files must know it too.
  const std::vector<SiteManifest>& kept() const { return kept_; }

 private:
  Ranks& ranks_;
  SiteStore& own_;
  SiteManifest manifest_;                       // of all ranks' clients
  std::map<std::uint64_t, std::size_t> homes_;  // of the same clients
  std::vector<PlacedClient> coming_;            // to this rank, as they travel
  bool is_bringing_ = false;
  std::vector<SiteManifest> kept_;
};

}  // namespace fedep
