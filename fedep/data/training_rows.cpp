#include "fedep/data/training_rows.h"

#include <numeric>

#include "fedep/message/check.h"

namespace fedep {

namespace {

std::vector<std::size_t> all_clients(const Dataset& data) {
  std::vector<std::size_t> clients(data.clients().size());
  std::iota(clients.begin(), clients.end(), std::size_t(0));
  return clients;
}

}  // namespace

TrainingRows::TrainingRows(std::unique_ptr<Dataset> data,
                           std::vector<std::vector<std::uint32_t>> rows)
    : TrainingRows(std::move(data), std::move(rows), {}) {}

TrainingRows::TrainingRows(std::unique_ptr<Dataset> data,
                           std::vector<std::vector<std::uint32_t>> rows,
                           std::vector<std::size_t> clients)
    : data_(std::move(data)),
      rows_(std::move(rows)),
      old_client_(clients.empty() ? all_clients(*data_) : std::move(clients)) {
  check_same_size("TrainingRows", "clients", old_client_.size(), rows_.size());
  for (std::size_t c = 0; c < rows_.size(); ++c) {
    clients_.emplace_back(data_->clients()[old_client_[c]].first, rows_[c].size());
    const std::span<const std::uint32_t> groups = data_->groups(old_client_[c]);
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
      const std::size_t old = old_client_[c];
      images_.back().push_back(raw->clients[old][row]);
      numbers_.back().push_back(raw->numbers.empty() ? row : raw->numbers[old][row]);
    }
  }
}

void TrainingRows::train_batch(std::size_t client, std::span<const std::uint32_t> examples,
                               const Address* augmentation, Batch& out) const {
  std::vector<std::uint32_t> inner;
  for (const std::uint32_t example : examples) inner.push_back(rows_[client][example]);
  data_->train_batch(old_client_[client], inner, augmentation, out);
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
