// A data set without some of every client's training examples, which are kept for a temperature:
// nobody trains on them, and no score is theirs. The test set stays what it is.
//
//   const auto data = without_calibration_rows(open_dataset(…), 0.05);
//   data->calibration()->test_batch(…)      // those examples
//
// Which examples depends on the client's id alone; clients with too few for the fraction give none.
#pragma once

#include <memory>

#include "fedep/data/dataset.h"

namespace fedep {

std::unique_ptr<Dataset> without_calibration_rows(std::unique_ptr<Dataset> data, double fraction);

}  // namespace fedep
