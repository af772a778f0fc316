#include "fedep/sim/score/event_risk.h"

#include <cmath>
#include <utility>
#include <vector>

#include "fedep/message/check.h"

namespace fedep {
namespace {

// log(p / (1 - p)) of p = 1 - e^-h.
double logit_of_hazard(double h) { return h > 30 ? h : std::log(std::expm1(h)); }

class EventRisk final : public Model {
 public:
  explicit EventRisk(std::unique_ptr<Model> counts) : counts_(std::move(counts)) {
    if (counts_->target() != TargetKind::count) {
      fail("event_risk", "model", "of counts", "of something else");
    }
  }

  const Layout& layout() const override { return counts_->layout(); }
  std::size_t outputs() const override { return 1; }
  Likelihood likelihood() const override { return {TargetKind::binary, 1.0}; }
  void initialise(std::uint64_t seed, std::span<float> theta) const override {
    counts_->initialise(seed, theta);
  }

  void logits(std::span<const float> theta, const Batch& spells, const Mode& mode,
              std::span<float> out) override {
    const std::vector<std::uint32_t>& offsets = spells.sparse.offsets;
    check_same_size("event_risk", "spells", spells.size + 1, offsets.size());
    pieces_.size = offsets.back();
    pieces_.dense = spells.dense;
    pieces_.log_exposure = spells.log_exposure;
    log_means_.resize(pieces_.size);
    counts_->logits(theta, pieces_, mode, log_means_);
    for (std::size_t i = 0; i < spells.size; ++i) {
      double hazard = 0;
      for (std::size_t j = offsets[i]; j < offsets[i + 1]; ++j) {
        hazard += std::exp(double(log_means_[j]));
      }
      out[i] = float(logit_of_hazard(hazard));
    }
  }

  double loss_gradient(std::span<const float>, const Batch&, const Mode&,
                       std::span<float>) override {
    refuse();
  }
  void add_squared_gradients(std::span<const float>, const Batch&, const Mode&,
                             std::span<const float>, std::span<float>) override {
    refuse();
  }

 private:
  [[noreturn]] static void refuse() { fail("event_risk", "use", "prediction", "training"); }

  std::unique_ptr<Model> counts_;
  Batch pieces_;
  std::vector<float> log_means_;
};

}  // namespace

std::unique_ptr<Model> event_risk(std::unique_ptr<Model> counts) {
  return std::make_unique<EventRisk>(std::move(counts));
}

Batch batch_of_spells(const Batch& pieces, std::span<const std::size_t> offsets, std::size_t begin,
                      std::size_t end) {
  if (begin > end || end >= offsets.size()) {
    fail("batch_of_spells", "range", fmt::format("within {} spells", offsets.size()),
         fmt::format("[{}, {})", begin, end));
  }
  const std::size_t first = offsets[begin], last = offsets[end];
  const std::size_t width = pieces.size == 0 ? 0 : pieces.dense.size() / pieces.size;
  Batch out;
  out.size = end - begin;
  out.dense.assign(pieces.dense.begin() + std::ptrdiff_t(first * width),
                   pieces.dense.begin() + std::ptrdiff_t(last * width));
  out.log_exposure.assign(pieces.log_exposure.begin() + std::ptrdiff_t(first),
                          pieces.log_exposure.begin() + std::ptrdiff_t(last));
  for (std::size_t i = begin; i < end; ++i) {
    out.sparse.offsets.push_back(std::uint32_t(offsets[i + 1] - first));
  }
  return out;
}

}  // namespace fedep
