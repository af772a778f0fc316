// A few small images a client, made up for tests: noise, brighter where the class says so.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fedep/data/memory_dataset.h"
#include "fedep/random/stream.h"

namespace fedep {

// Client k has sizes[k] images to train on, and two to be tested with.
inline std::unique_ptr<Dataset> tiny_images(const std::array<std::int64_t, 3>& shape,
                                            std::size_t classes,
                                            const std::vector<std::size_t>& sizes) {
  const std::size_t pixels = std::size_t(shape[0] * shape[1] * shape[2]);
  Batch train, test;
  ClientRows train_clients, test_clients;
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    const std::string id = "client-" + std::to_string(k);
    Stream stream({.seed = 9, .purpose = Purpose::test, .client = client_key(id)});
    for (std::size_t i = 0; i < sizes[k] + 2; ++i) {
      Batch& to = i < sizes[k] ? train : test;
      const std::size_t label = stream.below(classes);
      for (std::size_t pixel = 0; pixel < pixels; ++pixel) {
        to.dense.push_back(float(stream.normal() + (pixel % classes == label ? 1.0 : 0.0)));
      }
      to.labels.push_back(std::int32_t(label));
      ++to.size;
    }
    train_clients.add(id, sizes[k]);
    test_clients.add(id, 2);
  }
  DatasetInfo info{.name = "tiny images",
                   .features = {shape.begin(), shape.end()},
                   .target = TargetKind::label,
                   .outputs = classes,
                   .feature_names = {},
                   .output_names = {}};
  return memory_dataset(std::move(info), {std::move(train_clients), batch_rows(std::move(train))},
                        {std::move(test_clients), batch_rows(std::move(test))});
}

}  // namespace fedep
