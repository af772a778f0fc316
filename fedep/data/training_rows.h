// A data set whose clients train on some of another's training examples, under numbers of their own.
// What becomes of the others, and what is scored, is for the class that derives to say.
//
//   class Mine final : public TrainingRows { Mine(…) : TrainingRows(std::move(data), {{0, 2, 3}, …}) … };
//
// An example's crops stay those of its old number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fedep/data/dataset.h"

namespace fedep {

class TrainingRows : public Dataset {
 public:
  // Of every client, by their old numbers.
  TrainingRows(std::unique_ptr<Dataset> data, std::vector<std::vector<std::uint32_t>> rows);
  // Of some clients, by their old numbers too; the others are gone.
  TrainingRows(std::unique_ptr<Dataset> data, std::vector<std::vector<std::uint32_t>> rows,
               std::vector<std::size_t> clients);

  const DatasetInfo& info() const override { return data_->info(); }
  const std::vector<std::pair<std::string, std::size_t>>& clients() const override {
    return clients_;
  }
  void train_batch(std::size_t client, std::span<const std::uint32_t> examples,
                   const Address* augmentation, Batch& out) const override;
  std::span<const std::uint32_t> groups(std::size_t client) const override;
  std::optional<RawImages> raw_images() const override;

 protected:
  const Dataset& all() const { return *data_; }

 private:
  std::unique_ptr<Dataset> data_;
  std::vector<std::vector<std::uint32_t>> rows_;
  std::vector<std::size_t> old_client_;
  std::vector<std::pair<std::string, std::size_t>> clients_;
  std::vector<std::vector<std::uint32_t>> groups_;            // where there are any
  std::vector<std::vector<std::uint32_t>> images_, numbers_;  // where there are raw images
};

}  // namespace fedep
