// A data set whose test set is part of the training examples, for choosing settings: what is chosen
// by such runs has not seen the real test set.
//
//   const auto data = validation_dataset(open_dataset(…), 0.2);   // a fifth of every client's examples
//
// Which examples depends on the client's id alone. What was made of all training examples before
// (vocabularies, scales, PCA) stays as it is.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fedep/data/dataset.h"

namespace fedep {

// Every client's training examples in two, by a draw of `purpose`'s own. Those of a group
// (Dataset::groups) stay together.
struct RowSplit {
  std::vector<std::vector<std::uint32_t>> kept, held;
};
RowSplit split_rows(const Dataset& data, const std::string& purpose, double fraction);

std::unique_ptr<Dataset> validation_dataset(std::unique_ptr<Dataset> data, double fraction);

}  // namespace fedep
