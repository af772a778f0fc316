// Stateful clients' factors where a GPU computes: in its memory while they fit, the rest in
// page-locked main memory, from where the next round's are fetched while this round's clients
// train. For checkpoints it is a SiteStore over a `home` of files: what changed goes there when
// saved.
//
//   sites.begin({.size = d, .family = Family::isotropic, .slots = 1}, round);
//   DeviceSite* site = sites.find(key);                     // null: never visited, then
//   if (site == nullptr) site = &sites.add(key);            // the caller fills it
//   sites.prefetch(next_round_keys);
//   …                                                       // site->values are changed in place
//   sites.end(taken_keys);                                  // states of others must be unchanged
//
// A state changes only when the server has taken the client's delta, so there are no proposals
// here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "fedep/cuda/device/device.h"
#include "fedep/cuda/device/side_stream.h"
#include "fedep/round/site_store.h"

namespace fedep {

// Arrays of a state: the factor's eta, those of the slots, and in a diagonal family the lambdas in
// the same order. Each begins `stride` floats after the one before.
struct SiteShape {
  std::size_t size = 0;
  Family family = Family::isotropic;
  std::size_t slots = 0;

  std::size_t stride() const { return (size + 63) / 64 * 64; }
  std::size_t arrays() const { return (1 + slots) * (family == Family::diagonal ? 2 : 1); }
  std::size_t floats() const { return arrays() * stride(); }
  std::size_t bytes() const { return floats() * sizeof(float); }
  bool operator==(const SiteShape&) const = default;
};

struct DeviceSite {
  DeviceArray<float> values;
  std::vector<float> numbers;  // lambda of factor and slots where the family is isotropic
  std::int64_t steps = 0;      // of the optimizer

  // index 0: the factor, then the slots.
  float* eta(const SiteShape& shape, std::size_t index) {
    return values.data() + index * shape.stride();
  }
  float* lambda(const SiteShape& shape, std::size_t index) {
    return values.data() + (1 + shape.slots + index) * shape.stride();
  }
  const float* eta(const SiteShape& shape, std::size_t index) const {
    return values.data() + index * shape.stride();
  }
  const float* lambda(const SiteShape& shape, std::size_t index) const {
    return values.data() + (1 + shape.slots + index) * shape.stride();
  }
};

class DeviceSites final : public SiteStore {
 public:
  // `room`: bytes of GPU memory that states may stay in between rounds. None: what is free when a
  // client is first visited, less a reserve for everything else.
  explicit DeviceSites(SiteStore& home, std::optional<std::size_t> room = {});
  ~DeviceSites() override;

  // A round's turn. The clients it asks are those named to find() and add() until end().
  void begin(const SiteShape& shape, std::int64_t round);
  DeviceSite* find(std::uint64_t client);
  DeviceSite& add(std::uint64_t client);
  void prefetch(std::span<const std::uint64_t> next_clients);
  void end(std::span<const std::uint64_t> taken);

  // A settled state for kernels to read, wherever it lives; false: never visited. After a round's turn.
  bool look_on_gpu(std::uint64_t client, const std::function<void(const DeviceSite&)>& at) const;
  const SiteShape& shape() const { return shape_; }  // of the phase, once it has begun a round

  std::size_t in_gpu_memory() const { return resident_; }  // states
  std::size_t in_main_memory() const { return entries_.size() - resident_; }

  // SiteStore: what others give and take is in main memory.
  std::optional<SiteState> get(std::uint64_t client) const override;
  std::optional<SiteState> proposed(std::uint64_t client) const override;
  void propose(std::uint64_t client, std::int64_t round, SiteState state) override;
  void settle(std::int64_t round, std::span<const std::uint64_t> taken) override;
  void clear() override;
  SiteManifest save() override;
  void restore(const SiteManifest& manifest) override;
  void keep_only(std::span<const SiteManifest> manifests) override;
  std::size_t visited() const override;
  // What arrives waits in main memory until its client is asked. Between rounds' turns only, or of
  // clients that the round does not ask.
  SiteVersion release(std::uint64_t client) override;
  void adopt(std::uint64_t client, SiteVersion version) override;

 private:
  struct Entry {
    DeviceSite site;          // values are empty while the state is in main memory only
    float* pinned = nullptr;  // the state in main memory, if it does not stay on the GPU
    bool resident = false;    // stays on the GPU
    bool current = true;      // pinned holds what values held, where there are no values
    bool changed = false;     // since home got it
    bool at_home = false;     // home has some state of this client
    bool fresh = false;       // made in this round
    std::int64_t round = -1;  // in which it was made
  };

  Entry& make_entry(std::uint64_t client);
  Entry& load(std::uint64_t client, const SiteState& state);
  DeviceArray<float> fetched(const Entry& entry) const;
  void drop_all();
  void erase(std::uint64_t client);
  SiteState to_host(const Entry& entry) const;

  SiteStore& home_;
  std::optional<std::size_t> room_;
  SiteShape shape_;
  std::int64_t round_ = -1;
  std::size_t resident_ = 0;
  std::map<std::uint64_t, Entry> entries_;
  std::map<std::uint64_t, SiteVersion>
      arrived_;  // of other stores; neither in entries_ nor at home
  std::set<std::uint64_t> cohort_;
  std::set<std::uint64_t> next_;
  std::vector<DeviceArray<float>> leaving_;  // still being copied to main memory
  mutable SideStream in_, out_;
};

}  // namespace fedep
