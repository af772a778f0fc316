// A result of Table 2, as tests of results and of the tables made of them need it.
//
//   EXPECT_TRUE(has(to_line(table2_result(1, 0.5)), "fed_ep_i"));
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "app/reproduce/results.h"

namespace fedep {

inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

inline Result table2_result(std::uint64_t seed, double accuracy, double rounds_to_50 = kNan) {
  return {.table = "table2",
          .row = "fed_ep_i",
          .seed = seed,
          .rounds = 1500,
          .metrics = {{"accuracy_1000", 0.48},
                      {"accuracy_1500", accuracy},
                      {"rounds_to_45", 470},
                      {"rounds_to_50", rounds_to_50}},
          .seconds = 12.5,
          .device = "cpu: a CPU, 2 threads",
          .date = "2026-01-31T12:00:00Z",
          .version = "0.1.0"};
}

inline bool has(const std::string& text, std::string_view part) {
  return text.find(part) != text.npos;
}

}  // namespace fedep
