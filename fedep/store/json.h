// JSON whose objects keep the order in which their fields were written, as files and pages show them.
#pragma once

#include <nlohmann/json.hpp>

namespace fedep {

using Json = nlohmann::ordered_json;

}  // namespace fedep
