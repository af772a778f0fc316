#include "fedep/data/calibration_rows.h"

#include "fedep/data/held_rows.h"
#include "fedep/data/training_rows.h"
#include "fedep/data/validation.h"

namespace fedep {
namespace {

// The rows as a test set. Training clients and examples are those that are left, as for the other test
// set: what a client's own rows tell of it (sim/rows/own_intercept.h) is known here too.
class CalibrationRows final : public Dataset {
 public:
  CalibrationRows(const Dataset& left, const Dataset& all,
                  std::vector<std::vector<std::uint32_t>> rows)
      : left_(left), held_(all, std::move(rows)) {}

  const DatasetInfo& info() const override { return left_.info(); }
  const std::vector<std::pair<std::string, std::size_t>>& clients() const override {
    return left_.clients();
  }
  void train_batch(std::size_t client, std::span<const std::uint32_t> examples,
                   const Address* augmentation, Batch& out) const override {
    left_.train_batch(client, examples, augmentation, out);
  }
  std::size_t test_size() const override { return held_.size(); }
  void test_batch(std::size_t begin, std::size_t end, Batch& out) const override {
    held_.batch(begin, end, out);
  }
  const std::vector<std::string>& test_clients() const override { return held_.clients(); }
  std::size_t test_client(std::size_t example) const override { return held_.client(example); }

 private:
  const Dataset& left_;
  HeldRows held_;
};

class WithoutRows final : public TrainingRows {
 public:
  WithoutRows(std::unique_ptr<Dataset> data, const RowSplit& split)
      : TrainingRows(std::move(data), split.kept), calibration_(*this, all(), split.held) {}

  std::size_t test_size() const override { return all().test_size(); }
  void test_batch(std::size_t begin, std::size_t end, Batch& out) const override {
    all().test_batch(begin, end, out);
  }
  const std::vector<std::string>& test_clients() const override { return all().test_clients(); }
  std::size_t test_client(std::size_t example) const override { return all().test_client(example); }
  const Dataset* calibration() const override { return &calibration_; }
  const Dataset* unlike() const override { return all().unlike(); }

 private:
  CalibrationRows calibration_;
};

}  // namespace

std::unique_ptr<Dataset> without_calibration_rows(std::unique_ptr<Dataset> data, double fraction) {
  const RowSplit split = split_rows(*data, "calibration", fraction);
  return std::make_unique<WithoutRows>(std::move(data), split);
}

}  // namespace fedep
