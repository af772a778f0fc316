#include "fedep/cuda/round/device_sites.h"

#include <cstring>
#include <utility>

#include "fedep/message/check.h"

namespace fedep {
namespace {

// What the GPU must have left for all but the states that stay.
constexpr std::size_t kReserve = std::size_t(8) << 30;

Message message_of(const SiteShape& shape, const std::vector<float>& values,
                   const std::vector<float>& numbers, std::size_t index) {
  const auto array = [&](std::size_t which) {
    const auto begin = values.begin() + std::ptrdiff_t(which * shape.stride());
    return HostVector<float>(std::vector<float>(begin, begin + std::ptrdiff_t(shape.size)));
  };
  if (shape.family == Family::isotropic) return {array(index), numbers[index]};
  return {array(index), array(1 + shape.slots + index)};
}

void write_message(const SiteShape& shape, const Message& message, std::size_t index,
                   std::vector<float>& values, std::vector<float>& numbers) {
  check_same_size("site state", "a message", shape.size, message.size());
  if (message.family() != shape.family) fail("site state", "a message", "of q's family", "not");
  const auto write = [&](std::size_t which, std::span<const float> from) {
    std::memcpy(values.data() + which * shape.stride(), from.data(), from.size_bytes());
  };
  write(index, message.eta().span());
  if (shape.family == Family::isotropic) {
    numbers[index] = message.lambda_scalar();
  } else {
    write(1 + shape.slots + index, message.lambda_vector().span());
  }
}

DeviceSite empty_site(const SiteShape& shape) {
  DeviceSite site;
  site.values = DeviceArray<float>(shape.floats());
  if (shape.family == Family::isotropic) site.numbers.assign(1 + shape.slots, 0);
  return site;
}

void upload(const SiteShape& shape, const SiteState& state, DeviceSite& site) {
  check_same_size("site state", "optimizer state", shape.slots, state.optimizer.slots.size());
  std::vector<float> values(shape.floats());
  write_message(shape, state.factor, 0, values, site.numbers);
  for (std::size_t i = 0; i < shape.slots; ++i) {
    write_message(shape, state.optimizer.slots[i], 1 + i, values, site.numbers);
  }
  site.values.upload(values);
  site.steps = state.optimizer.steps;
}

}  // namespace

DeviceSites::DeviceSites(SiteStore& home, std::optional<std::size_t> room)
    : home_(home), room_(room) {}

DeviceSites::~DeviceSites() {
  try {
    drop_all();
  } catch (const std::exception&) {  // the GPU is lost; nothing is left to do
  }
}

void DeviceSites::begin(const SiteShape& shape, std::int64_t round) {
  if (!(shape == shape_)) {
    if (!entries_.empty()) fail("DeviceSites", "shape", "the same throughout a phase", "another");
    shape_ = shape;
  }
  round_ = round;
  cohort_.clear();
  next_.clear();
  in_.main_follows();  // what was fetched ahead is there before anybody reads it
}

DeviceSites::Entry& DeviceSites::make_entry(std::uint64_t client) {
  Entry entry;
  const std::size_t bytes = shape_.bytes();
  entry.resident = room_ ? (resident_ + 1) * bytes <= *room_
                         : device_memory_free() > kReserve + 4 * cohort_.size() * bytes;
  entry.site = empty_site(shape_);
  resident_ += entry.resident;
  return entries_.insert_or_assign(client, std::move(entry)).first->second;
}

DeviceSite* DeviceSites::find(std::uint64_t client) {
  cohort_.insert(client);
  if (const auto found = entries_.find(client); found != entries_.end()) {
    Entry& entry = found->second;
    if (entry.site.values.size() == 0) entry.site.values = fetched(entry);  // nobody did it ahead
    return &entry.site;
  }
  if (const auto arrived = arrived_.extract(client)) {
    const SiteVersion& version = arrived.mapped();
    Entry& entry = load(client, expanded(version.state));
    entry.round = version.round;
    entry.changed = !version.written;
    return &entry.site;
  }
  const std::optional<SiteState> saved = home_.get(client);
  if (!saved) return nullptr;
  Entry& entry = load(client, *saved);
  entry.at_home = true;
  return &entry.site;
}

DeviceSites::Entry& DeviceSites::load(std::uint64_t client, const SiteState& state) {
  Entry& entry = make_entry(client);
  upload(shape_, state, entry.site);
  entry.current = false;  // not in page-locked memory yet
  return entry;
}

// From page-locked memory; device_stream() goes on when all of it is there.
DeviceArray<float> DeviceSites::fetched(const Entry& entry) const {
  DeviceArray<float> values(shape_.floats());
  in_.follow_main();
  in_.follow(out_);
  in_.copy(values.data(), entry.pinned, shape_.bytes());
  in_.main_follows();
  return values;
}

bool DeviceSites::look_on_gpu(std::uint64_t client,
                              const std::function<void(const DeviceSite&)>& at) const {
  const auto found = entries_.find(client);
  if (found == entries_.end()) {
    const std::optional<SiteState> state = get(client);
    if (!state) return false;
    DeviceSite site = empty_site(shape_);
    upload(shape_, *state, site);
    at(site);
    return true;
  }
  const Entry& entry = found->second;
  if (entry.site.values.size() > 0) {
    in_.main_follows();  // it may still be on its way
    at(entry.site);
  } else {
    at({.values = fetched(entry), .numbers = entry.site.numbers, .steps = entry.site.steps});
  }
  return true;
}

DeviceSite& DeviceSites::add(std::uint64_t client) {
  cohort_.insert(client);
  Entry& entry = make_entry(client);
  entry.fresh = true;
  return entry.site;
}

void DeviceSites::prefetch(std::span<const std::uint64_t> next_clients) {
  next_.insert(next_clients.begin(), next_clients.end());
  std::vector<Entry*> missing;
  for (const std::uint64_t client : next_) {
    const auto found = entries_.find(client);
    if (found == entries_.end() || found->second.site.values.size() > 0) continue;
    found->second.site.values = DeviceArray<float>(shape_.floats());
    missing.push_back(&found->second);
  }
  if (missing.empty()) return;
  in_.follow_main();
  in_.follow(out_);
  for (Entry* entry : missing) {
    in_.copy(entry->site.values.data(), entry->pinned, shape_.bytes());
  }
}

void DeviceSites::end(std::span<const std::uint64_t> taken) {
  out_.main_follows();  // copies of earlier rounds, done long ago
  leaving_.clear();
  for (const std::uint64_t client : taken) {
    Entry& entry = entries_.at(client);
    entry.changed = true;
    entry.current = false;
    entry.fresh = false;
    entry.round = round_;
  }
  out_.follow_main();
  for (const std::uint64_t client : cohort_) {
    const auto found = entries_.find(client);
    if (found == entries_.end()) continue;
    Entry& entry = found->second;
    if (entry.fresh) {  // nobody took its delta: as if it had never been asked
      erase(client);
      continue;
    }
    if (entry.resident || next_.contains(client)) continue;
    if (!entry.current) {
      if (entry.pinned == nullptr) {
        entry.pinned = static_cast<float*>(pinned_allocate(shape_.bytes()));
      }
      out_.copy(entry.pinned, entry.site.values.data(), shape_.bytes());
      entry.current = true;
    }
    leaving_.push_back(std::exchange(entry.site.values, DeviceArray<float>()));
  }
}

void DeviceSites::erase(std::uint64_t client) {
  const auto found = entries_.find(client);
  if (found == entries_.end()) return;
  resident_ -= found->second.resident;
  if (found->second.pinned != nullptr) {
    in_.wait();
    out_.wait();
    pinned_free(found->second.pinned);
  }
  entries_.erase(found);
}

void DeviceSites::drop_all() {
  in_.wait();
  out_.wait();
  for (auto& [client, entry] : entries_) pinned_free(entry.pinned);
  entries_.clear();
  arrived_.clear();
  leaving_.clear();
  cohort_.clear();
  next_.clear();
  resident_ = 0;
  shape_ = {};
}

SiteState DeviceSites::to_host(const Entry& entry) const {
  std::vector<float> values(shape_.floats());
  if (entry.site.values.size() > 0) {
    in_.main_follows();  // it may still be on its way
    copy_to_host(values.data(), entry.site.values.data(), shape_.bytes());
  } else {
    out_.wait();
    std::memcpy(values.data(), entry.pinned, shape_.bytes());
  }
  SiteState state;
  state.factor = message_of(shape_, values, entry.site.numbers, 0);
  state.optimizer.steps = entry.site.steps;
  for (std::size_t i = 0; i < shape_.slots; ++i) {
    state.optimizer.slots.push_back(message_of(shape_, values, entry.site.numbers, 1 + i));
  }
  return state;
}

std::optional<SiteState> DeviceSites::get(std::uint64_t client) const {
  if (const auto found = entries_.find(client); found != entries_.end()) {
    return to_host(found->second);
  }
  if (const auto found = arrived_.find(client); found != arrived_.end()) {
    return expanded(found->second.state);
  }
  return home_.get(client);
}

std::optional<SiteState> DeviceSites::proposed(std::uint64_t client) const {
  return home_.proposed(client);
}

void DeviceSites::propose(std::uint64_t client, std::int64_t round, SiteState state) {
  home_.propose(client, round, std::move(state));
}

void DeviceSites::settle(std::int64_t round, std::span<const std::uint64_t> taken) {
  home_.settle(round, taken);
  for (const std::uint64_t client : taken) {  // home's is the newer one
    erase(client);
    arrived_.erase(client);
  }
}

void DeviceSites::clear() {
  drop_all();
  home_.clear();
}

SiteManifest DeviceSites::save() {
  std::map<std::int64_t, std::vector<std::uint64_t>> changed;  // by the round they were made in
  for (const auto& [client, entry] : entries_) {
    if (entry.changed) changed[entry.round].push_back(client);
  }
  for (const auto& [client, version] : arrived_) {
    if (!version.written) changed[version.round].push_back(client);
  }
  for (const auto& [round, clients] : changed) {
    for (const std::uint64_t client : clients) {
      if (auto arrived = arrived_.extract(client)) {  // home has it from now on
        home_.propose_stored(client, round, std::move(arrived.mapped().state));
        continue;
      }
      Entry& entry = entries_.at(client);
      home_.propose(client, round, to_host(entry));
      entry.changed = false;
      entry.at_home = true;
    }
    home_.settle(round, clients);
  }
  return home_.save();
}

SiteVersion DeviceSites::release(std::uint64_t client) {
  if (auto arrived = arrived_.extract(client)) return std::move(arrived.mapped());
  SiteVersion version;
  const auto found = entries_.find(client);
  if (found == entries_.end()) {
    std::optional<SiteState> state = home_.get(client);
    version = home_.release(client);
    version.state = without_zeros(*state);
    return version;
  }
  const Entry& entry = found->second;
  version = {.round = entry.round, .state = {}, .written = !entry.changed};
  if (entry.at_home) {
    const SiteVersion saved = home_.release(client);
    if (!entry.changed) version = {.round = saved.round, .state = {}, .written = saved.written};
  }
  version.state = without_zeros(to_host(entry));
  erase(client);
  return version;
}

void DeviceSites::adopt(std::uint64_t client, SiteVersion version) {
  arrived_.insert_or_assign(client, std::move(version));
}

void DeviceSites::restore(const SiteManifest& manifest) {
  drop_all();
  home_.restore(manifest);
}

void DeviceSites::keep_only(std::span<const SiteManifest> manifests) { home_.keep_only(manifests); }

std::size_t DeviceSites::visited() const {
  std::size_t here_only = arrived_.size();
  for (const auto& [client, entry] : entries_) here_only += !entry.at_home && !entry.fresh;
  return home_.visited() + here_only;
}

}  // namespace fedep
