// Named results of an evaluation, in the order they are written. NaN stands for "does not exist".
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace fedep {

using Metrics = std::vector<std::pair<std::string, double>>;

}  // namespace fedep
