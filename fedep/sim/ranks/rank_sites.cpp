#include "fedep/sim/ranks/rank_sites.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "fedep/message/error.h"
#include "fedep/store/site_record.h"

namespace fedep {
namespace {

struct Head {
  std::int64_t round;
  bool written;
};

Bytes pack(std::uint64_t client, const SiteVersion& version) {
  Bytes bytes = bytes_of(Head{version.round, version.written});
  write_site(client, version.round, version.state, [&](std::span<const std::byte> piece) {
    bytes.insert(bytes.end(), piece.begin(), piece.end());
  });
  return bytes;
}

SiteVersion unpack(std::uint64_t client, std::span<const std::byte> bytes) {
  const Head head = values_of<Head>(bytes.first(sizeof(Head)))[0];
  return {.round = head.round,
          .state = read_site(client, head.round, read_record(bytes.subspan(sizeof(Head)))),
          .written = head.written};
}

}  // namespace

std::optional<std::size_t> RankSites::home(std::uint64_t client) const {
  const auto found = homes_.find(client);
  if (found == homes_.end()) return std::nullopt;
  return found->second;
}

void RankSites::begin_bringing(std::span<const PlacedClient> clients) {
  std::vector<Transfer> transfers;
  std::vector<Bytes> mine;
  for (const auto& [client, rank] : clients) {
    const auto found = homes_.find(client);
    if (found == homes_.end() || found->second == rank) continue;
    const bool goes = found->second == ranks_.rank(), comes = rank == ranks_.rank();
    if (own_.is_shared()) {  // all ranks see the files
      if (goes) own_.release(client);
      if (comes) own_.adopt(client, {manifest_.at(client), {}, true});
    } else {
      transfers.push_back({.from = found->second, .to = rank});
      if (goes) mine.push_back(pack(client, own_.release(client)));
      if (comes) coming_.push_back({client, rank});
    }
    found->second = rank;
  }
  is_bringing_ = !transfers.empty();
  if (is_bringing_) ranks_.begin_exchange(std::move(transfers), std::move(mine));
}

void RankSites::end_bringing() {
  if (!is_bringing_) return;
  const std::vector<Bytes> got = ranks_.end_exchange();
  for (std::size_t i = 0; i < coming_.size(); ++i) {
    own_.adopt(coming_[i].client, unpack(coming_[i].client, got.at(i)));
  }
  coming_.clear();
  is_bringing_ = false;
}

void RankSites::settled(std::int64_t round, std::span<const PlacedClient> clients) {
  for (const PlacedClient& placed : clients) {
    manifest_[placed.client] = round;
    homes_[placed.client] = placed.rank;
  }
}

bool RankSites::is_elsewhere(std::uint64_t client) const {
  return home(client).value_or(0) != ranks_.rank();
}

std::optional<SiteState> RankSites::get(std::uint64_t client) const {
  if (const auto rank = home(client); rank && *rank != ranks_.rank()) {
    throw RunError(fmt::format("site store: client {:016x}'s factor is on rank {}, not on rank {}",
                               client, *rank, ranks_.rank()));
  }
  return own_.get(client);
}

std::optional<SiteState> RankSites::proposed(std::uint64_t client) const {
  return own_.proposed(client);
}

void RankSites::propose(std::uint64_t client, std::int64_t round, SiteState state) {
  own_.propose(client, round, std::move(state));
}

void RankSites::settle(std::int64_t round, std::span<const std::uint64_t> taken) {
  own_.settle(round, taken);
}

void RankSites::clear() {
  own_.clear();
  manifest_.clear();
  homes_.clear();
}

SiteManifest RankSites::save() {
  const SiteManifest mine = own_.save();
  for (const auto& [client, round] : without_means(mine)) {
    const auto found = manifest_.find(client);
    if (found == manifest_.end() || found->second != round || homes_[client] != ranks_.rank()) {
      throw RunError(
          fmt::format("site store: rank {} has a factor of client {:016x} that it should not",
                      ranks_.rank(), client));
    }
  }
  ranks_.wait_for_all();
  SiteManifest all = manifest_;
  for (const auto& [key, round] : mine) {
    if (key == mean_key(round)) all[key] = round;
  }
  return all;
}

void RankSites::restore(const SiteManifest& manifest) {
  clear();
  manifest_ = without_means(manifest);
  SiteManifest mine;
  std::size_t next = 0;
  for (const auto& [key, round] : manifest) {
    if (key == mean_key(round)) mine[key] = round;
  }
  for (const auto& [client, round] : manifest_) {
    homes_[client] = next++ % ranks_.size();
    if (homes_[client] == ranks_.rank()) mine[client] = round;
  }
  own_.restore(mine);
}

void RankSites::keep_only(std::span<const SiteManifest> manifests) {
  kept_.assign(manifests.begin(), manifests.end());
  std::vector<SiteManifest> needed = kept_;
  needed.push_back(manifest_);
  own_.keep_only(needed);
}

double RankSites::largest(double here) const {
  double most = here;
  for (const Bytes& bytes : ranks_.gather(bytes_of(here))) {
    most = std::max(most, values_of<double>(bytes).at(0));
  }
  return most;
}

}  // namespace fedep
