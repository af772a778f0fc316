// What stateful clients keep between visits: their factor and the state of the optimizer that
// moves it. A client that was never visited costs nothing.
//
// A visit proposes a new state; it becomes the client's state when the round is settled, that is,
// once the server has taken the delta. A lost report or a crash in between leaves the client where
// it was.
//
//   store->propose(key, round, state);
//   store->settle(round, taken_keys);
//   const SiteManifest saved = store->save();     // durable; goes into the checkpoint
//   store->restore(saved);                        // back to exactly that
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "fedep/message/gaussian.h"
#include "fedep/message/sparse_message.h"
#include "fedep/optim/optimizer.h"
#include "fedep/round/mean_shelf.h"

namespace fedep {

struct SiteState {
  Message factor;
  OptimizerState optimizer;
  // What is to be added to the factor's η (mean_shelf.h); empty where the factor is all there is.
  std::vector<MeanShare> shares = {};

  bool operator==(const SiteState&) const = default;
};

// A state as stores keep it: without its zeros, so that a factor which speaks of few weights costs
// what it says, however many weights there are.
struct StoredSite {
  SparseMessage factor;
  std::int64_t steps = 0;
  std::vector<SparseMessage> slots;
  std::vector<MeanShare> shares = {};

  std::size_t bytes() const;
  bool operator==(const StoredSite&) const = default;
};
StoredSite without_zeros(const SiteState& state);
SiteState expanded(const StoredSite& stored);

// A settled state on its way from one store to another.
struct SiteVersion {
  std::int64_t round = 0;  // in which it was made
  StoredSite state;
  bool written = false;  // to the archive, which both stores have
};

// Different clients may be read and proposed from different threads at once; all else may not
// overlap with anything.
class SiteStore {
 public:
  virtual ~SiteStore() = default;

  // Nothing for a client that has no settled (or proposed) state.
  virtual std::optional<SiteState> get(std::uint64_t client) const = 0;
  virtual std::optional<SiteState> proposed(std::uint64_t client) const = 0;
  virtual void propose(std::uint64_t client, std::int64_t round, SiteState state) = 0;
  virtual void propose_stored(std::uint64_t client, std::int64_t round, StoredSite state);
  // Proposals of `taken` clients count from now on, all others are dropped.
  virtual void settle(std::int64_t round, std::span<const std::uint64_t> taken) = 0;
  // The settled state as it is kept, where there is one.
  virtual void look(std::uint64_t client, const std::function<void(const StoredSite&)>& at) const;
  // Everybody starts without state again: a new phase begins.
  virtual void clear() = 0;
  // What states refer to, saved and restored with them. Stores that cannot keep such throw InputError.
  virtual MeanShelf& means();

  virtual SiteManifest save() = 0;
  virtual void restore(const SiteManifest& manifest) = 0;
  // What none of these names may go; `restore` will be asked for no other. Also called after a
  // restore: files of later rounds are what a run that died had made.
  virtual void keep_only(std::span<const SiteManifest> manifests) = 0;

  virtual std::size_t visited() const = 0;
  // Whether reading all states again and again costs no more than memory does.
  virtual bool in_memory() const { return true; }
  // Whether all stores of a run see the same states by their names, as files that all of them share.
  virtual bool is_shared() const { return false; }

  // A run's states may be spread over the stores of several processes, each client's in one of them.
  // Takes a settled state out, or in. Stores that cannot do that throw InputError.
  virtual SiteVersion release(std::uint64_t client);
  virtual void adopt(std::uint64_t client, SiteVersion version);
  // Another store of the run answers for this client; for one without a state one of them does.
  virtual bool is_elsewhere(std::uint64_t) const { return false; }
  // What all stores of the run have together: sums in place, and the largest of their numbers. All
  // of them are asked alike.
  virtual void add_up(std::span<std::int64_t>) const {}
  virtual double largest(double here) const { return here; }
};

// Where saved states go, one for every client and the round in which it was made (store/site_files.h).
class SiteArchive {
 public:
  virtual ~SiteArchive() = default;

  virtual void write(std::uint64_t client, std::int64_t round, const StoredSite& state) = 0;
  // Throws InputError for a state that is missing or damaged.
  virtual StoredSite read(std::uint64_t client, std::int64_t round) const = 0;
  virtual bool has(std::uint64_t client, std::int64_t round) const = 0;
  // Removes every state that no manifest names.
  virtual void keep_only(std::span<const SiteManifest> manifests) = 0;
};

// States in memory, written to the archive when saved. Without one nothing outlives the store, and
// save throws.
std::unique_ptr<SiteStore> make_memory_store(std::unique_ptr<SiteArchive> archive = nullptr);

}  // namespace fedep
