#include "fedep/data/validation.h"

#include <algorithm>

#include "fedep/data/append_batch.h"
#include "fedep/data/holdout.h"

namespace fedep {
namespace {

class ValidationDataset final : public Dataset {
 public:
  ValidationDataset(std::unique_ptr<Dataset> data, double fraction) : data_(std::move(data)) {
    for (const auto& [id, examples] : data_->clients()) {
      // Not the same draw as the one that set the test set apart.
      const std::vector<bool> held = held_out(id + "/validation", examples, fraction);
      train_.emplace_back();
      held_.emplace_back();
      for (std::size_t i = 0; i < held.size(); ++i) {
        (held[i] ? held_ : train_).back().push_back(std::uint32_t(i));
      }
      clients_.emplace_back(id, train_.back().size());
      test_clients_.push_back(id);
      begins_.push_back(begins_.back() + held_.back().size());
    }
  }

  const DatasetInfo& info() const override { return data_->info(); }
  const std::vector<std::pair<std::string, std::size_t>>& clients() const override {
    return clients_;
  }
  void train_batch(std::size_t client, std::span<const std::uint32_t> examples,
                   const Address* augmentation, Batch& out) const override {
    std::vector<std::uint32_t> inner;
    for (const std::uint32_t example : examples) inner.push_back(train_[client][example]);
    data_->train_batch(client, inner, augmentation, out);
  }

  std::size_t test_size() const override { return begins_.back(); }
  void test_batch(std::size_t begin, std::size_t end, Batch& out) const override {
    out = {};
    Batch part;
    for (std::size_t at = begin; at < end;) {
      const std::size_t client = test_client(at);
      const std::size_t until = std::min(end, begins_[client + 1]);
      data_->train_batch(client, std::span(held_[client]).subspan(at - begins_[client], until - at),
                         nullptr, part);
      append(part, out);
      at = until;
    }
  }
  const std::vector<std::string>& test_clients() const override { return test_clients_; }
  std::size_t test_client(std::size_t example) const override {
    const auto after = std::upper_bound(begins_.begin(), begins_.end(), example);
    return std::size_t(after - begins_.begin()) - 1;
  }

 private:
  std::unique_ptr<Dataset> data_;
  std::vector<std::vector<std::uint32_t>> train_, held_;  // a client's examples, by its old indices
  std::vector<std::pair<std::string, std::size_t>> clients_;
  std::vector<std::string> test_clients_;
  std::vector<std::size_t> begins_{0};  // where each client's held-out examples begin
};

}  // namespace

std::unique_ptr<Dataset> validation_dataset(std::unique_ptr<Dataset> data, double fraction) {
  return std::make_unique<ValidationDataset>(std::move(data), fraction);
}

}  // namespace fedep
