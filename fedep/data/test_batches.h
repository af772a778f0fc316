// All that a data set holds, for tests that look at its examples.
//
//   EXPECT_EQ(training_batch(*data, 2), training_batch(*again, 2));
//   EXPECT_EQ(test_batch(*data).size, data->test_size());
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "fedep/data/dataset.h"

namespace fedep {

// A client's examples in their order, without augmentation.
inline Batch training_batch(const Dataset& data, std::size_t client) {
  std::vector<std::uint32_t> examples(data.clients()[client].second);
  std::iota(examples.begin(), examples.end(), 0u);
  Batch batch;
  data.train_batch(client, examples, nullptr, batch);
  return batch;
}

inline Batch test_batch(const Dataset& data) {
  Batch batch;
  data.test_batch(0, data.test_size(), batch);
  return batch;
}

}  // namespace fedep
