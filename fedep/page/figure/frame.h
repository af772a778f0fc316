// What pictures with axes share: the palette, ranges of data, ticks, and where data lands.
//
//   const Frame frame{{60, 40, 500, 300}, {0, 1500}, {0.2, 0.6}};
//   svg.circle(frame.at(400, 0.45), 3, {.fill = kBlue});
#pragma once

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "fedep/page/figure/svg.h"

namespace fedep {

// Okabe and Ito's palette, told apart by readers with any colour vision.
inline constexpr std::string_view kOrange = "#E69F00";
inline constexpr std::string_view kSkyBlue = "#56B4E9";
inline constexpr std::string_view kGreen = "#009E73";
inline constexpr std::string_view kBlue = "#0072B2";
inline constexpr std::string_view kVermilion = "#D55E00";
inline constexpr std::string_view kPurple = "#CC79A7";
inline constexpr std::string_view kInk = "#222222";
inline constexpr std::string_view kGrey = "#666666";
inline constexpr std::string_view kGrid = "#E8E8E8";
inline constexpr std::string_view kAxis = "#888888";

struct AxisRange {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  double size() const { return high - low; }
  void cover(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  AxisRange padded(double by) const { return {low - by, high + by}; }
};

// Where data lands on the picture.
struct Frame {
  Box box;
  AxisRange x;
  AxisRange y;

  Pixel at(double data_x, double data_y) const {
    return {box.left + (data_x - x.low) / x.size() * box.width,
            box.bottom() - (data_y - y.low) / y.size() * box.height};
  }
};

// 1, 2 or 5 times a power of ten, giving about `count` ticks.
double tick_spacing(double size, int count);
// Multiples of the spacing within the range; none where they would lie closer than numbers do, or be
// more than a thousand.
std::vector<double> ticks(const AxisRange& range, double spacing);
// Six digits at most, with a true minus sign.
std::string tick_label(double value);

}  // namespace fedep
