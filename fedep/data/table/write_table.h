// A data set as a table that `tabular` reads back to the same examples: a row each, with the
// client, train or test, what is to be predicted, and the features.
//
//   write_table(*open_synthetic(settings, seed), [&](std::string_view lines) { out << lines; });
//
// Read it with client_column = "client", test_column = "part", label_column = "label" (and
// exposure_column = "exposure", where counts have one) and scale = false. A number is written so that it reads back to the same bits. Classes are numbered
// by tabular in the order of their names, and only those that training examples have.
#pragma once

#include <functional>
#include <string_view>

#include "fedep/data/dataset.h"

namespace fedep {

// Throws InputError for data with sparse features or with tags.
void write_table(const Dataset& data, const std::function<void(std::string_view)>& write);

}  // namespace fedep
