#include "fedep/config/comma_list.h"

#include <algorithm>
#include <cstddef>

namespace fedep {

std::vector<std::string> comma_list(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    std::string_view item = text.substr(0, comma);
    while (item.starts_with(' ')) item.remove_prefix(1);
    while (item.ends_with(' ')) item.remove_suffix(1);
    if (!item.empty()) out.emplace_back(item);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return out;
}

}  // namespace fedep
