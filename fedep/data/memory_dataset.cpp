#include "fedep/data/memory_dataset.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string_view>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "fedep/message/check.h"
#include "fedep/message/nearest.h"

namespace fedep {
namespace {

void append_row(const SparseRows& from, std::size_t row, SparseRows& to) {
  const std::size_t begin = from.offsets[row];
  const std::size_t end = from.offsets[row + 1];
  to.columns.insert(to.columns.end(), from.columns.begin() + begin, from.columns.begin() + end);
  if (!from.values.empty()) {
    to.values.insert(to.values.end(), from.values.begin() + begin, from.values.begin() + end);
  }
  to.offsets.push_back(std::uint32_t(to.columns.size()));
}

void clear(SparseRows& rows) {
  rows.offsets.assign(1, 0);
  rows.columns.clear();
  rows.values.clear();
}

class BatchRows final : public RowSource {
 public:
  explicit BatchRows(Batch rows) : rows_(std::move(rows)) {
    const std::size_t n = rows_.size;
    width_ = n == 0 ? 0 : rows_.dense.size() / n;
    check_same_size("batch_rows", "dense", width_ * n, rows_.dense.size());
    if (rows_.sparse.rows() > 0) check_same_size("batch_rows", "sparse", n, rows_.sparse.rows());
    if (rows_.tags.rows() > 0) check_same_size("batch_rows", "tags", n, rows_.tags.rows());
    if (!rows_.labels.empty()) check_same_size("batch_rows", "labels", n, rows_.labels.size());
    if (!rows_.reals.empty()) check_same_size("batch_rows", "reals", n, rows_.reals.size());
    if (!rows_.log_exposure.empty()) {
      check_same_size("batch_rows", "log_exposure", n, rows_.log_exposure.size());
    }
  }

  std::size_t rows() const override { return rows_.size; }

  void gather(std::span<const std::size_t> rows, Batch& out) const override {
    out.size = rows.size();
    out.dense.resize(rows.size() * width_);
    out.labels.clear();
    out.reals.clear();
    out.log_exposure.clear();
    clear(out.sparse);
    clear(out.tags);
    float* next = out.dense.data();
    for (const std::size_t row : rows) {
      next = std::copy_n(rows_.dense.begin() + row * width_, width_, next);
      if (!rows_.labels.empty()) out.labels.push_back(rows_.labels[row]);
      if (!rows_.reals.empty()) out.reals.push_back(rows_.reals[row]);
      if (!rows_.log_exposure.empty()) out.log_exposure.push_back(rows_.log_exposure[row]);
      if (rows_.sparse.rows() > 0) append_row(rows_.sparse, row, out.sparse);
      if (rows_.tags.rows() > 0) append_row(rows_.tags, row, out.tags);
    }
  }

 private:
  Batch rows_;
  std::size_t width_ = 0;
};

class MemoryDataset final : public Dataset {
 public:
  MemoryDataset(DatasetInfo info, Part train, Part test)
      : info_(std::move(info)), train_(std::move(train)), test_(std::move(test)) {
    const std::string what = fmt::format("data set {}", info_.name);
    if (train_.clients.ids.empty()) fail(what, "clients", "at least one", "none");
    check_part(what, train_);
    check_part(what, test_);
    if (!train_.groups.empty()) {
      check_same_size(what, "groups", train_.clients.offsets.back(), train_.groups.size());
    }
    for (std::size_t k = 0; k < train_.clients.ids.size(); ++k) {
      const std::size_t n = train_.clients.offsets[k + 1] - train_.clients.offsets[k];
      if (n == 0) {
        fail(what, fmt::format("client {}", shown(train_.clients.ids[k])), "with examples",
             "without any");
      }
      clients_.emplace_back(train_.clients.ids[k], n);
    }
  }

  const DatasetInfo& info() const override { return info_; }
  const std::vector<std::pair<std::string, std::size_t>>& clients() const override {
    return clients_;
  }

  std::span<const std::uint32_t> groups(std::size_t client) const override {
    if (train_.groups.empty()) return {};
    const auto& offsets = train_.clients.offsets;
    return std::span(train_.groups).subspan(offsets[client], offsets[client + 1] - offsets[client]);
  }

  void train_batch(std::size_t client, std::span<const std::uint32_t> examples, const Address*,
                   Batch& out) const override {
    check_in("train_batch", "client", double(client), 0, double(clients_.size()) - 1);
    thread_local std::vector<std::size_t> rows;
    rows.clear();
    for (const std::uint32_t example : examples) {
      if (example >= clients_[client].second) {
        fail("train_batch", "example", fmt::format("below {}", clients_[client].second),
             fmt::format("{}", example));
      }
      rows.push_back(train_.clients.offsets[client] + example);
    }
    train_.rows->gather(rows, out);
  }

  std::size_t test_size() const override { return test_.size(); }
  void test_batch(std::size_t begin, std::size_t end, Batch& out) const override {
    test_.batch(begin, end, out);
  }

  const std::vector<std::string>& test_clients() const override { return test_.clients.ids; }

  std::size_t test_client(std::size_t example) const override { return test_.client_of(example); }

 private:
  static void check_part(std::string_view what, const Part& part) {
    check_same_size(what, "rows", part.clients.offsets.back(), part.rows->rows());
    std::unordered_set<std::string_view> seen;
    for (const std::string& id : part.clients.ids) {
      if (!seen.insert(id).second) fail(what, "client ids", "different", shown(id) + " twice");
    }
  }

  DatasetInfo info_;
  Part train_;
  Part test_;
  std::vector<std::pair<std::string, std::size_t>> clients_;
};

}  // namespace

std::unique_ptr<const RowSource> batch_rows(Batch rows) {
  return std::make_unique<BatchRows>(std::move(rows));
}

void ClientRows::add(std::string id, std::size_t rows) {
  ids.push_back(std::move(id));
  offsets.push_back(offsets.back() + rows);
}

void Part::batch(std::size_t begin, std::size_t end, Batch& out) const {
  if (begin > end || end > size()) {
    fail("test_batch", "range", fmt::format("within [0, {}]", size()),
         fmt::format("[{}, {})", begin, end));
  }
  std::vector<std::size_t> chosen(end - begin);
  std::iota(chosen.begin(), chosen.end(), begin);
  rows->gather(chosen, out);
}

std::size_t Part::client_of(std::size_t row) const {
  check_in("test_client", "example", double(row), 0, double(size()) - 1);
  const auto after = std::upper_bound(clients.offsets.begin(), clients.offsets.end(), row);
  return std::size_t(after - clients.offsets.begin()) - 1;
}

std::unique_ptr<Dataset> memory_dataset(DatasetInfo info, Part train, Part test) {
  return std::make_unique<MemoryDataset>(std::move(info), std::move(train), std::move(test));
}

}  // namespace fedep
