// A client's examples as a model sees them that has this client's words alone, in the same order.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "fedep/data/dataset.h"
#include "fedep/message/reach.h"

namespace fedep {

// Data with sparse features; for the clients whose words are all within the reach of a linear model of
// `width` outputs. What is referred to must outlive this.
class OwnWords final : public Dataset {
 public:
  OwnWords(const Dataset& data, const Reach& reach, std::size_t width);

  std::size_t words() const { return words_; }

  void train_batch(std::size_t client, std::span<const std::uint32_t> examples,
                   const Address* augmentation, Batch& out) const override;

  const DatasetInfo& info() const override { return data_.info(); }
  const std::vector<std::pair<std::string, std::size_t>>& clients() const override {
    return data_.clients();
  }
  std::size_t test_size() const override { return 0; }
  void test_batch(std::size_t begin, std::size_t end, Batch& out) const override;
  const std::vector<std::string>& test_clients() const override { return nobody_; }
  std::size_t test_client(std::size_t) const override { return 0; }

 private:
  const Dataset& data_;
  std::size_t words_ = 0;
  std::vector<std::uint32_t> places_;  // of words among the client's
  std::vector<std::string> nobody_;
};

}  // namespace fedep
