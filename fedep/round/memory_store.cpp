#include <mutex>
#include <utility>

#include "fedep/message/check.h"
#include "fedep/round/site_store.h"

namespace fedep {
namespace {

class MemoryStore final : public SiteStore {
 public:
  explicit MemoryStore(std::unique_ptr<SiteArchive> archive) : archive_(std::move(archive)) {}

  std::optional<SiteState> get(std::uint64_t client) const override {
    return find(settled_, client);
  }
  std::optional<SiteState> proposed(std::uint64_t client) const override {
    return find(proposed_, client);
  }

  void propose(std::uint64_t client, std::int64_t round, SiteState state) override {
    const std::lock_guard lock(mutex_);
    proposed_.insert_or_assign(client, SiteVersion{round, std::move(state), false});
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
  }

  SiteManifest save() override {
    SiteManifest manifest;
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
    for (const auto& [client, round] : manifest) {
      settled_.emplace(client, SiteVersion{round, archive().read(client, round), true});
    }
  }

  void keep_only(std::span<const SiteManifest> manifests) override {
    if (archive_) archive_->keep_only(manifests);
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

  std::optional<SiteState> find(const Versions& versions, std::uint64_t client) const {
    const std::lock_guard lock(mutex_);
    const auto found = versions.find(client);
    if (found == versions.end()) return std::nullopt;
    return found->second.state;
  }

  SiteArchive& archive() const {
    if (!archive_) throw InputError("site store: saving needs a folder, but this store has none");
    return *archive_;
  }

  std::unique_ptr<SiteArchive> archive_;
  mutable std::mutex mutex_;  // guards both maps
  Versions settled_;
  Versions proposed_;
};

[[noreturn]] void cannot_hand_over() {
  throw InputError("site store: this one keeps its states to itself");
}

}  // namespace

SiteVersion SiteStore::release(std::uint64_t) { cannot_hand_over(); }

void SiteStore::adopt(std::uint64_t, SiteVersion) { cannot_hand_over(); }

std::unique_ptr<SiteStore> make_memory_store(std::unique_ptr<SiteArchive> archive) {
  return std::make_unique<MemoryStore>(std::move(archive));
}

}  // namespace fedep
