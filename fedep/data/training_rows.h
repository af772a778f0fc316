// Some of a data set's training examples, under numbers of their own: for data sets that put the
// others to another use.
//
//   TrainingRows rows(data, {{0, 2, 3}, …});      // of every client, by their old numbers
//   rows.train_batch(client, examples, augmentation, out);
//
// An example's crops stay those of its old number.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fedep/data/dataset.h"

namespace fedep {

class TrainingRows {
 public:
  // `data` must outlive this.
  TrainingRows(const Dataset& data, std::vector<std::vector<std::uint32_t>> rows);

  const std::vector<std::pair<std::string, std::size_t>>& clients() const { return clients_; }
  void train_batch(std::size_t client, std::span<const std::uint32_t> examples,
                   const Address* augmentation, Batch& out) const;
  std::optional<RawImages> raw_images() const;

 private:
  const Dataset& data_;
  std::vector<std::vector<std::uint32_t>> rows_;
  std::vector<std::pair<std::string, std::size_t>> clients_;
  std::vector<std::vector<std::uint32_t>> images_, numbers_;  // where there are raw images
};

}  // namespace fedep
