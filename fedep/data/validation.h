// A data set whose test set is part of the training examples, for choosing settings: what is chosen
// by such runs has not seen the real test set.
//
//   const auto data = validation_dataset(open_dataset(…), 0.2);   // a fifth of every client's examples
//
// Which examples depends on the client's id alone. What was made of all training examples before
// (vocabularies, scales, PCA) stays as it is.
#pragma once

#include <memory>

#include "fedep/data/dataset.h"

namespace fedep {

std::unique_ptr<Dataset> validation_dataset(std::unique_ptr<Dataset> data, double fraction);

}  // namespace fedep
