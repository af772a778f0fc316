#include "fedep/data/made_up/synthetic.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "fedep/data/holdout.h"
#include "fedep/data/memory_dataset.h"
#include "fedep/data/partition.h"
#include "fedep/message/check.h"

namespace fedep {
namespace {

// Steps of a client's address.
enum : std::uint32_t { kScalars, kWeights, kFeatureMean, kFeatures };

struct SyntheticClient {
  std::size_t examples = 0;
  std::vector<double> weights;  // [classes, dimension]
  std::vector<double> biases;
  std::vector<double> mean;
};

Stream stream_at(std::uint64_t seed, const std::string& id, std::uint32_t step) {
  return Stream(
      {.seed = seed, .purpose = Purpose::synthetic_data, .client = client_key(id), .step = step});
}

std::vector<double> normals(Stream stream, double mean, std::size_t count) {
  std::vector<double> out(count);
  for (double& value : out) value = mean + stream.normal();
  return out;
}

SyntheticClient draw_client(const DataSettings& settings, std::uint64_t seed,
                            const std::string& id) {
  const auto dimension = std::size_t(settings.dimension);
  Stream scalars = stream_at(seed, id, kScalars);
  const double u = settings.alpha * scalars.normal();
  const double centre = settings.beta * scalars.normal();
  const double half = 0.5 * settings.examples;
  const double size = half + half * std::exp(scalars.normal() - 0.5);  // exp: mean one

  SyntheticClient client;
  client.examples = std::max<std::size_t>(1, std::size_t(std::lround(std::min(size, 20 * half))));
  client.weights = normals(stream_at(seed, id, kWeights), u, kSyntheticClasses * (dimension + 1));
  client.biases.assign(client.weights.end() - kSyntheticClasses, client.weights.end());
  client.weights.resize(kSyntheticClasses * dimension);
  client.mean = normals(stream_at(seed, id, kFeatureMean), centre, dimension);
  return client;
}

std::int32_t most_likely(const SyntheticClient& client, std::span<const double> x) {
  std::int32_t best = 0;
  double best_logit = 0;
  for (std::size_t c = 0; c < kSyntheticClasses; ++c) {
    double logit = client.biases[c];
    for (std::size_t j = 0; j < x.size(); ++j) logit += client.weights[c * x.size() + j] * x[j];
    if (c == 0 || logit > best_logit) {
      best = std::int32_t(c);
      best_logit = logit;
    }
  }
  return best;
}

}  // namespace

std::unique_ptr<Dataset> open_synthetic(const DataSettings& settings, std::uint64_t seed,
                                        const std::filesystem::path&) {
  check_positive("data set synthetic", "data.clients", settings.clients);
  check_positive("data set synthetic", "data.dimension", settings.dimension);
  check_positive("data set synthetic", "data.examples", settings.examples);
  check_not_negative("data set synthetic", "data.alpha", settings.alpha);
  check_not_negative("data set synthetic", "data.beta", settings.beta);

  const auto dimension = std::size_t(settings.dimension);
  std::vector<double> deviation(dimension);
  for (std::size_t j = 0; j < dimension; ++j) deviation[j] = std::pow(double(j + 1), -0.6);

  ClientRows train_clients, test_clients;
  Batch train, test;
  std::vector<double> x(dimension);
  for (int k = 0; k < settings.clients; ++k) {
    const std::string id = fmt::format("client-{}", k);
    const SyntheticClient client = draw_client(settings, seed, id);
    if (client.examples < std::size_t(std::max(settings.min_examples, 0))) continue;
    const std::size_t held = held_out_count(client.examples, settings.test_fraction);
    const std::size_t kept = client.examples - held;
    const std::size_t used =
        settings.max_examples > 0 ? std::min(kept, std::size_t(settings.max_examples)) : kept;
    Stream features = stream_at(seed, id, kFeatures);
    for (std::size_t i = 0; i < client.examples; ++i) {
      for (std::size_t j = 0; j < dimension; ++j) {
        x[j] = client.mean[j] + deviation[j] * features.normal();
      }
      if (i >= used && i < kept) continue;
      Batch& to = i < kept ? train : test;
      for (const double value : x) to.dense.push_back(float(value));
      to.labels.push_back(most_likely(client, x));
      ++to.size;
    }
    train_clients.add(id, used);
    if (held > 0) test_clients.add(id, held);
  }
  check_clients_left("synthetic", train_clients.ids.size(), settings);
  DatasetInfo info{.name = settings.name,
                   .features = {settings.dimension},
                   .target = TargetKind::label,
                   .outputs = kSyntheticClasses,
                   .feature_names = {},
                   .output_names = {}};
  return memory_dataset(std::move(info), {std::move(train_clients), batch_rows(std::move(train))},
                        {std::move(test_clients), batch_rows(std::move(test))});
}

}  // namespace fedep
