#include "fedep/round/mean_shelf.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "fedep/message/error.h"
#include "fedep/random/stream.h"
#include "fedep/round/site_store.h"

namespace fedep {
namespace {

// The newest stays: another process may still be writing it. Before the next one is kept that is over.
constexpr std::size_t kLeastKept = 2;

}  // namespace

std::uint64_t mean_key(std::int64_t round) {
  return client_key(fmt::format("\x01mean of round {}", round));  // nobody's id begins so
}

SiteManifest without_means(const SiteManifest& manifest) {
  SiteManifest clients;
  for (const auto& [key, round] : manifest) {
    if (key != mean_key(round)) clients.emplace_hint(clients.end(), key, round);
  }
  return clients;
}

void MeanShelf::keep(std::int64_t round, HostVector<float> mean, bool writes) {
  auto kept = std::make_shared<const HostVector<float>>(std::move(mean));
  if (archive_ != nullptr && writes) {
    archive_->write(mean_key(round), round,
                    {.factor = without_zeros(Message(*kept, 0.0f)), .steps = 0, .slots = {}});
  }
  kept_.insert(round);
  const std::lock_guard lock(mutex_);
  remember(round, std::move(kept));
}

MeanShelf::Mean MeanShelf::at(std::int64_t round) const {
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = memory_.find(round); found != memory_.end()) {
      Mean mean = found->second;
      remember(round, mean);
      return mean;
    }
  }
  if (!kept_.contains(round)) {
    throw InputError(fmt::format(
        "site store: q's mean of round {}, which a factor refers to, is not kept", round));
  }
  auto read = std::make_shared<const HostVector<float>>(
      expanded(archive().read(mean_key(round), round).factor.eta));
  const std::lock_guard lock(mutex_);
  remember(round, read);
  return read;
}

// The mutex is held.
void MeanShelf::remember(std::int64_t round, Mean mean) const {
  std::erase(latest_, round);
  latest_.push_back(round);
  const std::size_t bytes = std::max<std::size_t>(1, mean->size() * sizeof(float));
  memory_.insert_or_assign(round, std::move(mean));
  if (archive_ == nullptr) return;
  const std::size_t most = std::max(kLeastKept, most_bytes_ / bytes);
  while (latest_.size() > most) {
    const auto oldest =
        std::ranges::find_if(latest_, [&](std::int64_t kept) { return kept != *kept_.rbegin(); });
    memory_.erase(*oldest);
    latest_.erase(oldest);
  }
}

void MeanShelf::clear() {
  kept_.clear();
  const std::lock_guard lock(mutex_);
  memory_.clear();
  latest_.clear();
}

SiteManifest MeanShelf::manifest() const {
  SiteManifest manifest;
  for (const std::int64_t round : kept_) manifest[mean_key(round)] = round;
  return manifest;
}

void MeanShelf::restore(const SiteManifest& manifest) {
  clear();
  for (const auto& [key, round] : manifest) {
    if (key == mean_key(round)) kept_.insert(round);
  }
  for (const std::int64_t round : kept_)
    archive().read(mean_key(round), round);  // throws if damaged
}

SiteArchive& MeanShelf::archive() const {
  if (archive_ == nullptr)
    throw InputError("site store: means of q need a folder, but this store has none");
  return *archive_;
}

std::size_t MeanShelf::in_memory() const {
  const std::lock_guard lock(mutex_);
  return memory_.size();
}

}  // namespace fedep
