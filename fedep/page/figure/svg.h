// A small SVG writer: shapes and text in pixel coordinates, y downwards.
//
//   Svg svg(640, 400, "Distance against rounds");
//   svg.line({10, 10}, {90, 10}, {.stroke = "#0072B2", .width = 2});
//   svg.text({50, 30}, "rounds", {.anchor = Anchor::middle});
//   file << svg.str();
//
// A picture stands on a white card, so it reads the same on a light and on a dark page.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace fedep {

struct Pixel {
  double x = 0;
  double y = 0;
};

struct Box {
  double left = 0;
  double top = 0;
  double width = 0;
  double height = 0;

  double right() const { return left + width; }
  double bottom() const { return top + height; }
};

struct ShapeStyle {
  std::string_view fill = "none";
  std::string_view stroke = "none";
  double width = 1;            // of the stroke
  std::string_view dash = "";  // as in stroke-dasharray: "6 4"
  double opacity = 1;
};

enum class Anchor { start, middle, end };

struct TextStyle {
  double size = 14;
  Anchor anchor = Anchor::start;
  std::string_view fill = "#333333";
  bool bold = false;
  double rotate = 0;               // degrees, clockwise, about the anchor point
  std::string_view exponent = "";  // raised and smaller, after the text: 10 and -4
};

class Svg {
 public:
  // The title is what a screen reader says and what a browser shows as a tooltip.
  Svg(double width, double height, std::string_view title);

  void line(Pixel from, Pixel to, const ShapeStyle& style);
  void polyline(std::span<const Pixel> points, const ShapeStyle& style);
  void polygon(std::span<const Pixel> points, const ShapeStyle& style);
  void rect(const Box& box, const ShapeStyle& style, double corner = 0);
  void circle(Pixel center, double radius, const ShapeStyle& style);
  // Half axes in pixels; the first one is turned by `rotate` degrees clockwise from the x axis.
  void ellipse(Pixel center, double half_a, double half_b, double rotate, const ShapeStyle& style);
  void text(Pixel at, std::string_view content, const TextStyle& style);

  // What is drawn between the two is cut off at the box. They do not nest.
  void begin_clip(const Box& box);
  void end_clip();

  // The whole document.
  std::string str() const;

 private:
  std::string body_;
  int clips_ = 0;
};

// & < > " and ' as entities; control characters, which XML cannot carry, as a space.
std::string xml_escape(std::string_view text);

}  // namespace fedep
