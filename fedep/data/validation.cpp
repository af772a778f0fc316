#include "fedep/data/validation.h"

#include "fedep/data/held_rows.h"
#include "fedep/data/holdout.h"
#include "fedep/data/training_rows.h"

namespace fedep {
namespace {

class ValidationDataset final : public Dataset {
 public:
  ValidationDataset(std::unique_ptr<Dataset> data, const RowSplit& split)
      : data_(std::move(data)), train_(*data_, split.kept), held_(*data_, split.held) {}

  const DatasetInfo& info() const override { return data_->info(); }
  const std::vector<std::pair<std::string, std::size_t>>& clients() const override {
    return train_.clients();
  }
  void train_batch(std::size_t client, std::span<const std::uint32_t> examples,
                   const Address* augmentation, Batch& out) const override {
    train_.train_batch(client, examples, augmentation, out);
  }
  std::optional<RawImages> raw_images() const override { return train_.raw_images(); }

  std::size_t test_size() const override { return held_.size(); }
  void test_batch(std::size_t begin, std::size_t end, Batch& out) const override {
    held_.batch(begin, end, out);
  }
  const std::vector<std::string>& test_clients() const override { return held_.clients(); }
  std::size_t test_client(std::size_t example) const override { return held_.client(example); }

 private:
  std::unique_ptr<Dataset> data_;
  TrainingRows train_;
  HeldRows held_;
};

}  // namespace

RowSplit split_rows(const Dataset& data, const std::string& purpose, double fraction) {
  RowSplit split;
  for (const auto& [id, examples] : data.clients()) {
    const std::vector<bool> held = held_out(id + "/" + purpose, examples, fraction);
    split.kept.emplace_back();
    split.held.emplace_back();
    for (std::size_t i = 0; i < held.size(); ++i) {
      (held[i] ? split.held : split.kept).back().push_back(std::uint32_t(i));
    }
  }
  return split;
}

std::unique_ptr<Dataset> validation_dataset(std::unique_ptr<Dataset> data, double fraction) {
  const RowSplit split = split_rows(*data, "validation", fraction);
  return std::make_unique<ValidationDataset>(std::move(data), split);
}

}  // namespace fedep
