#include "fedep/store/scratch_store.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "fedep/message/error.h"
#include "fedep/message/read_file.h"
#include "fedep/store/site_files.h"
#include "fedep/store/site_record.h"

namespace fedep {
namespace {

namespace fs = std::filesystem;

std::string why() { return std::generic_category().message(errno); }

class OwnFolder {
 public:
  explicit OwnFolder(const fs::path& above) {
    std::string name = (above / "fedep-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) {
      throw InputError(fmt::format("--scratch {}: must be a folder to write to, but is not: {}",
                                   above.string(), why()));
    }
    path_ = name;
  }
  ~OwnFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  OwnFolder(const OwnFolder&) = delete;
  OwnFolder& operator=(const OwnFolder&) = delete;

  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

void write_all(const FileDescriptor& file, const fs::path& path, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) throw RunError(fmt::format("{}: cannot write: {}", path.string(), why()));
    bytes = bytes.subspan(std::size_t(written));
  }
}

class ScratchStore final : public SiteStore {
 public:
  ScratchStore(const fs::path& scratch, std::unique_ptr<SiteArchive> archive)
      : folder_(scratch),
        files_(folder_.path()),
        archive_(std::move(archive)),
        means_(archive_.get()) {}

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
    write(client, round, state);
    const std::lock_guard lock(mutex_);
    proposed_[client] = {.round = round, .here = true, .archived = false};
  }

  void look(std::uint64_t client, const std::function<void(const StoredSite&)>& at) const override {
    if (const std::optional<StoredSite> stored = read(settled_, client)) at(*stored);
  }

  void settle(std::int64_t round, std::span<const std::uint64_t> taken) override {
    for (const std::uint64_t client : taken) {
      const auto proposal = proposed_.find(client);
      if (proposal == proposed_.end() || proposal->second.round != round) continue;
      if (const auto old = settled_.find(client); old != settled_.end()) remove(*old);
      settled_[client] = proposal->second;
      proposed_.erase(proposal);
    }
    for (const auto& dropped : proposed_) remove(dropped);
    proposed_.clear();
  }

  void clear() override {
    for (const auto& old : settled_) remove(old);
    for (const auto& old : proposed_) remove(old);
    settled_.clear();
    proposed_.clear();
    means_.clear();
  }
  MeanShelf& means() override { return means_; }

  SiteManifest save() override {
    SiteManifest manifest = means_.manifest();
    for (auto& [client, version] : settled_) {
      if (!version.archived || !archive_->has(client, version.round)) {
        archive_->write(client, version.round, files_.read(client, version.round));
        version.archived = true;
      }
      manifest[client] = version.round;
    }
    return manifest;
  }

  // They are read where they are until they change.
  void restore(const SiteManifest& manifest) override {
    clear();
    means_.restore(manifest);
    for (const auto& [client, round] : without_means(manifest)) {
      archive_->read(client, round);  // throws if damaged
      settled_[client] = {.round = round, .here = false, .archived = true};
    }
  }

  void keep_only(std::span<const SiteManifest> manifests) override {
    std::vector<SiteManifest> wanted(manifests.begin(), manifests.end());
    SiteManifest& own = wanted.emplace_back(means_.manifest());
    for (const auto& [client, version] : settled_) {
      if (!version.here) own[client] = version.round;
    }
    archive_->keep_only(wanted);
  }

  std::size_t visited() const override { return settled_.size(); }
  bool in_memory() const override { return false; }

  SiteVersion release(std::uint64_t client) override {
    const auto found = settled_.find(client);
    SiteVersion version{.round = found->second.round,
                        .state = *read(settled_, client),
                        .written = found->second.archived};
    remove(*found);
    settled_.erase(found);
    return version;
  }
  void adopt(std::uint64_t client, SiteVersion version) override {
    write(client, version.round, version.state);
    settled_[client] = {.round = version.round, .here = true, .archived = version.written};
  }

 private:
  struct Version {
    std::int64_t round = 0;
    bool here = true;       // in the own folder; else in the archive alone
    bool archived = false;  // by this run
  };
  using Versions = std::map<std::uint64_t, Version>;

  std::optional<SiteState> copy(const Versions& versions, std::uint64_t client) const {
    const std::optional<StoredSite> stored = read(versions, client);
    if (!stored) return std::nullopt;
    return expanded(*stored);
  }
  std::optional<StoredSite> read(const Versions& versions, std::uint64_t client) const {
    Version version;
    {
      const std::lock_guard lock(mutex_);
      const auto found = versions.find(client);
      if (found == versions.end()) return std::nullopt;
      version = found->second;
    }
    return version.here ? files_.read(client, version.round)
                        : archive_->read(client, version.round);
  }

  void write(std::uint64_t client, std::int64_t round, const StoredSite& state) const {
    const fs::path path = site_file(folder_.path(), client, round);
    const FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (!file) throw RunError(fmt::format("{}: cannot open: {}", path.string(), why()));
    write_site(client, round, state,
               [&](std::span<const std::byte> bytes) { write_all(file, path, bytes); });
  }

  void remove(const std::pair<const std::uint64_t, Version>& old) const {
    if (old.second.here) files_.remove(old.first, old.second.round);
  }

  OwnFolder folder_;
  SiteFiles files_;
  std::unique_ptr<SiteArchive> archive_;
  MeanShelf means_;  // those beyond memory are in the archive, which all processes of a run see
  mutable std::mutex mutex_;  // guards both maps
  Versions settled_;
  Versions proposed_;
};

}  // namespace

std::unique_ptr<SiteStore> make_scratch_store(const fs::path& scratch,
                                              std::unique_ptr<SiteArchive> archive) {
  return std::make_unique<ScratchStore>(scratch, std::move(archive));
}

}  // namespace fedep
