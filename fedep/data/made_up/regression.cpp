#include "fedep/data/made_up/regression.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "fedep/data/holdout.h"
#include "fedep/data/memory_dataset.h"
#include "fedep/data/partition.h"
#include "fedep/message/check.h"
#include "fedep/random/stream.h"

namespace fedep {

std::vector<double> regression_weights(const DataSettings& settings, std::uint64_t seed) {
  Stream stream({.seed = seed,
                 .purpose = Purpose::synthetic_data,
                 .client = client_key("regression weights")});
  std::vector<double> out(std::size_t(settings.dimension));
  for (double& value : out) value = stream.normal();
  return out;
}

std::unique_ptr<Dataset> open_regression(const DataSettings& settings, std::uint64_t seed,
                                         const std::filesystem::path&) {
  check_positive("data set regression", "data.clients", settings.clients);
  check_positive("data set regression", "data.dimension", settings.dimension);
  check_positive("data set regression", "data.examples", settings.examples);

  const std::vector<double> weights = regression_weights(settings, seed);
  ClientRows train_clients, test_clients;
  Batch train, test;
  for (int k = 0; k < settings.clients; ++k) {
    const std::string id = fmt::format("client-{}", k);
    Stream stream({.seed = seed, .purpose = Purpose::synthetic_data, .client = client_key(id)});
    const double scale = std::exp(0.3 * stream.normal());
    const std::size_t examples = std::max<std::size_t>(
        1, std::size_t(std::lround((0.5 + stream.uniform()) * settings.examples)));
    if (examples < std::size_t(std::max(settings.min_examples, 0))) continue;
    const std::size_t held = held_out_count(examples, settings.test_fraction);
    const std::size_t kept = examples - held;
    const std::size_t used =
        settings.max_examples > 0 ? std::min(kept, std::size_t(settings.max_examples)) : kept;
    for (std::size_t i = 0; i < examples; ++i) {
      const bool left_out = i >= used && i < kept;
      Batch& to = i < kept ? train : test;
      double y = 0;
      for (const double weight : weights) {
        // The model sees float features, so y is computed from them.
        const float x = float(scale * stream.normal());
        y += weight * double(x);
        if (!left_out) to.dense.push_back(x);
      }
      y += stream.normal();
      if (left_out) continue;
      to.reals.push_back(float(y));
      ++to.size;
    }
    train_clients.add(id, used);
    if (held > 0) test_clients.add(id, held);
  }
  check_clients_left("regression", train_clients.ids.size(), settings);
  DatasetInfo info{.name = settings.name,
                   .features = {settings.dimension},
                   .target = TargetKind::real,
                   .outputs = 1,
                   .feature_names = {},
                   .output_names = {}};
  return memory_dataset(std::move(info), {std::move(train_clients), batch_rows(std::move(train))},
                        {std::move(test_clients), batch_rows(std::move(test))});
}

}  // namespace fedep
