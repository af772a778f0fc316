#include "fedep/sim/coverage/drawn_outcomes.h"

#include <cmath>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "fedep/message/error.h"
#include "fedep/random/poisson.h"
#include "fedep/random/stream.h"
#include "fedep/sim/rows/client_rows.h"

namespace fedep {
namespace {

constexpr double kLargestCount = 1e7;  // a float has all whole numbers up to 1.6e7

double draw_count(Stream& stream, double log_mean, const std::string& client) {
  if (log_mean > std::log(kLargestCount)) {
    throw InputError(
        fmt::format("coverage: the prior makes counts of e^{:.1f} in {}, more than {:.0e}: its "
                    "precision must be "
                    "larger, or columns smaller",
                    log_mean, client, kLargestCount));
  }
  return draw_poisson(stream, std::exp(log_mean));
}

class DrawnOutcomes final : public Dataset {
 public:
  DrawnOutcomes(const Dataset& rows, std::span<const double> truth, const Likelihood& likelihood,
                std::uint64_t seed, double site_sd)
      : rows_(rows), likelihood_(likelihood), site_sd_(site_sd) {
    for (std::size_t k = 0; k < rows.clients().size(); ++k) {
      outcomes_.push_back(draw(k, truth, seed));
    }
  }

  const DatasetInfo& info() const override { return rows_.info(); }
  const std::vector<std::pair<std::string, std::size_t>>& clients() const override {
    return rows_.clients();
  }
  void train_batch(std::size_t client, std::span<const std::uint32_t> examples,
                   const Address* augmentation, Batch& out) const override {
    rows_.train_batch(client, examples, augmentation, out);
    for (std::size_t i = 0; i < examples.size(); ++i) {
      const double drawn = outcomes_[client][examples[i]];
      if (likelihood_.target == TargetKind::binary) {
        out.labels[i] = std::int32_t(drawn);
      } else {
        out.reals[i] = float(drawn);
      }
    }
  }
  std::size_t test_size() const override { return 0; }
  void test_batch(std::size_t, std::size_t, Batch& out) const override { out = {}; }
  const std::vector<std::string>& test_clients() const override { return nobody_; }
  std::size_t test_client(std::size_t) const override { return 0; }

 private:
  std::vector<double> draw(std::size_t client, std::span<const double> truth,
                           std::uint64_t seed) const {
    const GlmRows rows = rows_of(rows_, client, likelihood_);
    Stream stream(
        {.seed = seed, .purpose = Purpose::simulation, .client = client_key(rows.client)});
    Stream of_site({.seed = seed,
                    .purpose = Purpose::simulation,
                    .client = client_key(rows.client),
                    .step = 1});
    const double own = site_sd_ > 0 ? site_sd_ * of_site.normal() : 0;
    std::vector<double> out;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      double f = own + (rows.offset.empty() ? 0 : rows.offset[i]);
      for (std::size_t j = 0; j < truth.size(); ++j) f += truth[j] * rows.row(i)[j];
      out.push_back(outcome(stream, f, rows.client));
    }
    return out;
  }
  double outcome(Stream& stream, double f, const std::string& client) const {
    switch (likelihood_.target) {
      case TargetKind::binary:
        return stream.uniform() < 1 / (1 + std::exp(-f)) ? 1 : 0;
      case TargetKind::count:
        return draw_count(stream, f, client);
      default:
        return f + likelihood_.noise * stream.normal();
    }
  }

  const Dataset& rows_;
  Likelihood likelihood_;
  double site_sd_;
  std::vector<std::vector<double>> outcomes_;  // by client
  std::vector<std::string> nobody_;
};

}  // namespace

std::vector<double> draw_truth(const PriorSettings& prior, std::size_t size, std::uint64_t seed,
                               std::span<const CoordinatePrior> own) {
  Stream stream({.seed = seed, .purpose = Purpose::simulation});
  std::vector<PriorSettings> priors(size, prior);
  for (const auto& [coordinate, mean, precision] : own) priors.at(coordinate) = {mean, precision};
  std::vector<double> truth;
  for (const auto& [mean, precision] : priors) {
    truth.push_back(mean + stream.normal() / std::sqrt(precision));
  }
  return truth;
}

std::unique_ptr<Dataset> draw_outcomes(const Dataset& rows, std::span<const double> truth,
                                       const Likelihood& likelihood, std::uint64_t seed,
                                       double site_sd) {
  return std::make_unique<DrawnOutcomes>(rows, truth, likelihood, seed, site_sd);
}

}  // namespace fedep
