#include "fedep/data/held_rows.h"

#include <algorithm>
#include <span>

#include "fedep/data/append_batch.h"

namespace fedep {

HeldRows::HeldRows(const Dataset& data, std::vector<std::vector<std::uint32_t>> rows)
    : data_(data), rows_(std::move(rows)) {
  for (std::size_t c = 0; c < rows_.size(); ++c) {
    clients_.push_back(data.clients()[c].first);
    begins_.push_back(begins_.back() + rows_[c].size());
  }
}

void HeldRows::batch(std::size_t begin, std::size_t end, Batch& out) const {
  out = {};
  Batch part;
  for (std::size_t at = begin; at < end;) {
    const std::size_t c = client(at);
    const std::size_t until = std::min(end, begins_[c + 1]);
    data_.train_batch(c, std::span(rows_[c]).subspan(at - begins_[c], until - at), nullptr, part);
    append(part, out);
    at = until;
  }
}

std::size_t HeldRows::client(std::size_t example) const {
  const auto after = std::upper_bound(begins_.begin(), begins_.end(), example);
  return std::size_t(after - begins_.begin()) - 1;
}

}  // namespace fedep
