// Labels that were drawn from a model, by the address of their draw: recorded where one executor
// draws them, so that another can be compared with it on the very same labels.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "fedep/random/stream.h"

namespace fedep {

// Not for several threads at a time.
class LabelTape {
 public:
  void record(const Address& address, std::span<const std::int32_t> labels) {
    labels_[key(address)].assign(labels.begin(), labels.end());
  }
  // Empty if nothing was drawn there.
  std::span<const std::int32_t> at(const Address& address) const {
    const auto found = labels_.find(key(address));
    return found == labels_.end() ? std::span<const std::int32_t>() : found->second;
  }
  std::size_t size() const { return labels_.size(); }

 private:
  using Key = std::tuple<std::uint64_t, std::uint32_t, std::uint64_t, std::uint32_t>;
  static Key key(const Address& address) {
    return {address.seed, address.round, address.client, address.step};
  }
  std::map<Key, std::vector<std::int32_t>> labels_;
};

}  // namespace fedep
