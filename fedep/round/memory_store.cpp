#include <mutex>
#include <utility>

#include "fedep/message/check.h"
#include "fedep/round/site_store.h"

namespace fedep {
namespace {

class MemoryStore final : public SiteStore {
 public:
  explicit MemoryStore(std::unique_ptr<SiteArchive> archive)
      : archive_(std::move(archive)), means_(archive_.get()) {}

  std::optional<SiteState> get(std::uint64_t client) const override {
    return copy(settled_, client);
  }
  std::optional<SiteState> proposed(std::uint64_t client) const override {
    return copy(proposed_, client);
  }

  void propose(std::uint64_t client, std::int64_t round, SiteState state) override {
    propose_stored(client, round, without_zeros(state));
  }
  void propose_stored(std::uint64_t client, std::int64_t round, StoredSite state) override {
    const std::lock_guard lock(mutex_);
    proposed_.insert_or_assign(client, SiteVersion{round, std::move(state), false});
  }

  void look(std::uint64_t client, const std::function<void(const StoredSite&)>& at) const override {
    if (const StoredSite* const stored = find(settled_, client)) at(*stored);
  }

  void settle(std::int64_t round, std::span<const std::uint64_t> taken) override {
    for (const std::uint64_t client : taken) {
      const auto proposal = proposed_.find(client);
      if (proposal == proposed_.end() || proposal->second.round != round) continue;
      settled_.insert_or_assign(client, std::move(proposal->second));
    }
    proposed_.clear();
  }

  void clear() override {
    settled_.clear();
    proposed_.clear();
    means_.clear();
  }
  MeanShelf& means() override { return means_; }

  SiteManifest save() override {
    SiteManifest manifest = means_.manifest();
    for (auto& [client, version] : settled_) {
      // A state of that name that this store did not write may be another run's.
      if (!version.written || !archive().has(client, version.round)) {
        archive().write(client, version.round, version.state);
        version.written = true;
      }
      manifest[client] = version.round;
    }
    return manifest;
  }

  void restore(const SiteManifest& manifest) override {
    clear();
    means_.restore(manifest);
    for (const auto& [client, round] : without_means(manifest)) {
      settled_.emplace(client, SiteVersion{round, archive().read(client, round), true});
    }
  }

  void keep_only(std::span<const SiteManifest> manifests) override {
    if (!archive_) return;
    std::vector<SiteManifest> wanted(manifests.begin(), manifests.end());
    wanted.push_back(means_.manifest());  // which are written before anything names them
    archive_->keep_only(wanted);
  }

  std::size_t visited() const override { return settled_.size(); }

  SiteVersion release(std::uint64_t client) override {
    return std::move(settled_.extract(client).mapped());
  }
  void adopt(std::uint64_t client, SiteVersion version) override {
    settled_.insert_or_assign(client, std::move(version));
  }

 private:
  using Versions = std::map<std::uint64_t, SiteVersion>;

  // Stays where it is, and as it is, until the client proposes again or the round is settled.
  const StoredSite* find(const Versions& versions, std::uint64_t client) const {
    const std::lock_guard lock(mutex_);
    const auto found = versions.find(client);
    return found == versions.end() ? nullptr : &found->second.state;
  }
  std::optional<SiteState> copy(const Versions& versions, std::uint64_t client) const {
    const StoredSite* const stored = find(versions, client);
    if (stored == nullptr) return std::nullopt;
    return expanded(*stored);
  }

  SiteArchive& archive() const {
    if (!archive_) throw InputError("site store: saving needs a folder, but this store has none");
    return *archive_;
  }

  std::unique_ptr<SiteArchive> archive_;
  MeanShelf means_;
  mutable std::mutex mutex_;  // guards both maps
  Versions settled_;
  Versions proposed_;
};

[[noreturn]] void cannot_hand_over() {
  throw InputError("site store: this one keeps its states to itself");
}

}  // namespace

MeanShelf& SiteStore::means() {
  throw InputError(
      "site store: factors that refer to means of q need a store in main memory or on disk");
}

SiteVersion SiteStore::release(std::uint64_t) { cannot_hand_over(); }

void SiteStore::adopt(std::uint64_t, SiteVersion) { cannot_hand_over(); }

void SiteStore::propose_stored(std::uint64_t client, std::int64_t round, StoredSite state) {
  propose(client, round, expanded(state));
}

void SiteStore::look(std::uint64_t client, const std::function<void(const StoredSite&)>& at) const {
  if (const std::optional<SiteState> state = get(client)) at(without_zeros(*state));
}

std::size_t StoredSite::bytes() const {
  std::size_t sum = factor.bytes();
  for (const SparseMessage& slot : slots) sum += slot.bytes();
  return sum + shares.size() * sizeof(MeanShare);
}

StoredSite without_zeros(const SiteState& state) {
  StoredSite stored{.factor = without_zeros(state.factor),
                    .steps = state.optimizer.steps,
                    .slots = {},
                    .shares = state.shares};
  for (const Message& slot : state.optimizer.slots) stored.slots.push_back(without_zeros(slot));
  return stored;
}

SiteState expanded(const StoredSite& stored) {
  SiteState state{.factor = expanded(stored.factor),
                  .optimizer = {.steps = stored.steps, .slots = {}},
                  .shares = stored.shares};
  for (const SparseMessage& slot : stored.slots) state.optimizer.slots.push_back(expanded(slot));
  return state;
}

std::unique_ptr<SiteStore> make_memory_store(std::unique_ptr<SiteArchive> archive) {
  return std::make_unique<MemoryStore>(std::move(archive));
}

}  // namespace fedep
