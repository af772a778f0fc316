// Means of q that clients' factors refer to. Where a method has one precision for all weights, a visit
// moves the factor of weights that its client's examples never touch by multiples of q's mean in that
// round and of the factor itself (SilentLaw in algorithm/client_run.h): such a factor is the numbers of
// its client's own weights, and beyond them
//
//   η_k = Σ_r share_r μ_r,      r the rounds in which the client was visited.
//
// A μ_r serves all clients of its round. Later visits multiply a share and never make it 0, so a mean is
// kept until the phase is over and no factor is left.
//
//   shelf.keep(round, mean, true);
//   for (const auto& [round, share] : site.shares) eta += share * *shelf.at(round);
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <vector>

#include "fedep/message/host_vector.h"

namespace fedep {

class SiteArchive;

// Client key -> round in which the state that counts was made.
using SiteManifest = std::map<std::uint64_t, std::int64_t>;

struct MeanShare {
  std::int64_t round = 0;
  double share = 0;

  bool operator==(const MeanShare&) const = default;
};
// In place of a round: what factors of clients that were never visited have of each example (task.h).
inline constexpr std::int64_t kUnvisited = -1;

// The name under which a round's mean is in manifests and archives, beside the names of clients.
std::uint64_t mean_key(std::int64_t round);
SiteManifest without_means(const SiteManifest& manifest);

class MeanShelf {
 public:
  // A visit may still read what another thread's visit drives out of memory.
  using Mean = std::shared_ptr<const HostVector<float>>;
  static constexpr std::size_t kMostBytes = 2'000'000'000;

  // Of `archive` more than `most_bytes` are read again when they are asked for; without one all stay
  // in memory. It must outlive this.
  explicit MeanShelf(SiteArchive* archive, std::size_t most_bytes = kMostBytes)
      : archive_(archive), most_bytes_(most_bytes) {}

  // `writes`: this process brings it to the archive, where it is safe when this returns. Of all that
  // play a run one does.
  void keep(std::int64_t round, HostVector<float> mean, bool writes);
  // May be asked by several threads at once. Throws InputError for one that is not kept, or damaged.
  Mean at(std::int64_t round) const;

  void clear();
  SiteManifest manifest() const;  // of all that are kept
  // Those that the manifest names, of its clients nothing. They are read to see that they are whole.
  void restore(const SiteManifest& manifest);
  std::size_t in_memory() const;  // so many

 private:
  void remember(std::int64_t round, Mean mean) const;
  SiteArchive& archive() const;

  SiteArchive* archive_;
  std::size_t most_bytes_;
  std::set<std::int64_t> kept_;
  mutable std::mutex mutex_;  // guards what follows
  mutable std::map<std::int64_t, Mean> memory_;
  mutable std::vector<std::int64_t> latest_;  // of memory_, asked for longest ago first
};

}  // namespace fedep
