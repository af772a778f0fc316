#include "fedep/data/validation.h"

#include "fedep/data/held_rows.h"
#include "fedep/data/holdout.h"
#include "fedep/data/training_rows.h"

namespace fedep {
namespace {

class ValidationDataset final : public TrainingRows {
 public:
  ValidationDataset(std::unique_ptr<Dataset> data, const RowSplit& split)
      : TrainingRows(std::move(data), split.kept), held_(all(), split.held) {}

  std::size_t test_size() const override { return held_.size(); }
  void test_batch(std::size_t begin, std::size_t end, Batch& out) const override {
    held_.batch(begin, end, out);
  }
  const std::vector<std::string>& test_clients() const override { return held_.clients(); }
  std::size_t test_client(std::size_t example) const override { return held_.client(example); }

 private:
  HeldRows held_;
};

}  // namespace

RowSplit split_rows(const Dataset& data, const std::string& purpose, double fraction) {
  RowSplit split;
  for (std::size_t c = 0; c < data.clients().size(); ++c) {
    const auto& [id, examples] = data.clients()[c];
    const std::string draw = id + "/" + purpose;
    const std::span<const std::uint32_t> groups = data.groups(c);
    const std::vector<bool> held =
        groups.empty() ? held_out(draw, examples, fraction) : held_out(draw, groups, fraction);
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
