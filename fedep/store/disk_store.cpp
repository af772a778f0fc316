#include <mutex>
#include <set>
#include <utility>

#include "fedep/round/site_store.h"
#include "fedep/store/site_files.h"

namespace fedep {
namespace {

// Memory holds a round number per visited client; a settled or proposed state is the file of that
// round. Files of rounds that are past stay until keep_only, since a checkpoint may name them.
class DiskStore final : public SiteStore {
 public:
  DiskStore(const std::filesystem::path& folder, std::size_t weights)
      : files_(folder, weights), means_(&files_) {}

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
    files_.write(client, round, state);
    const std::lock_guard lock(mutex_);
    proposed_[client] = round;
  }

  void look(std::uint64_t client, const std::function<void(const StoredSite&)>& at) const override {
    if (const std::optional<StoredSite> stored = read(settled_, client)) at(*stored);
  }

  void settle(std::int64_t round, std::span<const std::uint64_t> taken) override {
    SiteManifest replaced;
    for (const std::uint64_t client : taken) {
      const auto proposal = proposed_.find(client);
      if (proposal == proposed_.end() || proposal->second != round) continue;
      if (const auto old = settled_.find(client); old != settled_.end()) replaced.insert(*old);
      settled_[client] = round;
      proposed_.erase(proposal);
    }
    for (const auto& [client, dropped] : proposed_) files_.remove(client, dropped);
    proposed_.clear();
    for (const auto& [client, old] : replaced) remove_unless_saved(client, old);
  }

  void clear() override {
    settled_.clear();
    proposed_.clear();
    means_.clear();
  }
  MeanShelf& means() override { return means_; }

  SiteManifest save() override {
    saved_.insert(settled_.begin(), settled_.end());
    SiteManifest manifest = settled_;
    manifest.merge(means_.manifest());
    return manifest;
  }

  void restore(const SiteManifest& manifest) override {
    const SiteManifest clients = without_means(manifest);
    for (const auto& [client, round] : clients) files_.read(client, round);  // throws if damaged
    means_.restore(manifest);
    settled_ = clients;
    saved_ = {manifest.begin(), manifest.end()};
    proposed_.clear();
  }

  void keep_only(std::span<const SiteManifest> manifests) override {
    saved_.clear();
    for (const SiteManifest& manifest : manifests) saved_.insert(manifest.begin(), manifest.end());
    std::vector<SiteManifest> wanted(manifests.begin(), manifests.end());
    wanted.push_back(settled_);
    wanted.push_back(means_.manifest());
    files_.keep_only(wanted);
  }

  std::size_t visited() const override { return settled_.size(); }
  bool in_memory() const override { return false; }
  bool is_shared() const override { return true; }

  // The file stays where it is, and all stores of a run see it.
  SiteVersion release(std::uint64_t client) override {
    const std::int64_t round = settled_.extract(client).mapped();
    return {.round = round, .state = {}, .written = true};
  }
  void adopt(std::uint64_t client, SiteVersion version) override {
    settled_[client] = version.round;
  }

 private:
  std::optional<SiteState> copy(const SiteManifest& versions, std::uint64_t client) const {
    const std::optional<StoredSite> stored = read(versions, client);
    if (!stored) return std::nullopt;
    return expanded(*stored);
  }

  std::optional<StoredSite> read(const SiteManifest& versions, std::uint64_t client) const {
    std::int64_t round = 0;
    {
      const std::lock_guard lock(mutex_);
      const auto found = versions.find(client);
      if (found == versions.end()) return std::nullopt;
      round = found->second;
    }
    return files_.read(client, round);
  }

  void remove_unless_saved(std::uint64_t client, std::int64_t round) const {
    if (!saved_.contains({client, round})) files_.remove(client, round);
  }

  SiteFiles files_;
  MeanShelf means_;
  mutable std::mutex mutex_;  // guards both maps
  SiteManifest settled_;
  SiteManifest proposed_;
  // What checkpoints name, each once: nobody but keep_only ends its growth, and where ranks keep
  // factors on GPUs it is asked on one of them only.
  std::set<std::pair<std::uint64_t, std::int64_t>> saved_;  // client, round
};

}  // namespace

std::unique_ptr<SiteStore> make_disk_store(const std::filesystem::path& folder,
                                           std::size_t weights) {
  return std::make_unique<DiskStore>(folder, weights);
}

}  // namespace fedep
