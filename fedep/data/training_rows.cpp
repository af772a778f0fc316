#include "fedep/data/training_rows.h"

#include "fedep/message/check.h"

namespace fedep {

TrainingRows::TrainingRows(std::unique_ptr<Dataset> data,
                           std::vector<std::vector<std::uint32_t>> rows)
    : data_(std::move(data)), rows_(std::move(rows)) {
  check_same_size("TrainingRows", "clients", data_->clients().size(), rows_.size());
  for (std::size_t c = 0; c < rows_.size(); ++c) {
    clients_.emplace_back(data_->clients()[c].first, rows_[c].size());
    const std::span<const std::uint32_t> groups = data_->groups(c);
    groups_.emplace_back();
    if (groups.empty()) continue;
    for (const std::uint32_t row : rows_[c]) groups_.back().push_back(groups[row]);
  }
  const std::optional<RawImages> raw = data_->raw_images();
  if (!raw) return;
  for (std::size_t c = 0; c < rows_.size(); ++c) {
    images_.emplace_back();
    numbers_.emplace_back();
    for (const std::uint32_t row : rows_[c]) {
      images_.back().push_back(raw->clients[c][row]);
      numbers_.back().push_back(raw->numbers.empty() ? row : raw->numbers[c][row]);
    }
  }
}

void TrainingRows::train_batch(std::size_t client, std::span<const std::uint32_t> examples,
                               const Address* augmentation, Batch& out) const {
  std::vector<std::uint32_t> inner;
  for (const std::uint32_t example : examples) inner.push_back(rows_[client][example]);
  data_->train_batch(client, inner, augmentation, out);
}

std::span<const std::uint32_t> TrainingRows::groups(std::size_t client) const {
  return groups_[client];
}

std::optional<RawImages> TrainingRows::raw_images() const {
  std::optional<RawImages> raw = data_->raw_images();
  if (!raw) return std::nullopt;
  raw->clients = images_;
  raw->numbers = numbers_;
  return raw;
}

}  // namespace fedep
