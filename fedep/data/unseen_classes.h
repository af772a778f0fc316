// A data set without some of its classes: nobody trains on their examples, and no score is of them. Those
// that are held out are kept, for whether a posterior notices that they are unlike all it has seen.
//
//   const auto data = without_classes(open_dataset(…), {"bear", "90"}, 1);
//   data->info().outputs                   // two fewer; the others' outputs close ranks
//   data->info().output_names              // what they were called: without names, by their numbers before
//   data->unlike()->test_batch(…)          // held-out bears and the like, without labels
//
// What was made of all training examples before (PCA) stays as it is.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fedep/data/dataset.h"

namespace fedep {

// Classes by their names or, where no name is so, by numbers from 0. Clients that keep fewer than
// `min_examples` training examples, or none, are left out. Throws InputError for data without classes and for
// tables, for a class that is not there, and if fewer than two classes or no client would be left.
std::unique_ptr<Dataset> without_classes(std::unique_ptr<Dataset> data,
                                         const std::vector<std::string>& classes, int min_examples);

}  // namespace fedep
