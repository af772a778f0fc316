#include "fedep/page/figure/svg.h"

#include <cmath>

#include <fmt/format.h>

#include "fedep/message/check.h"

namespace fedep {
namespace {

// Hundredths of a pixel, without trailing zeros.
std::string number(double value) {
  check_finite("svg", "coordinate", value);
  std::string text = fmt::format("{:.2f}", value);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

std::string attributes(const ShapeStyle& style) {
  std::string out = fmt::format(R"( fill="{}")", xml_escape(style.fill));
  if (style.stroke != "none") {
    out += fmt::format(R"( stroke="{}" stroke-width="{}")", xml_escape(style.stroke),
                       number(style.width));
  }
  if (!style.dash.empty()) out += fmt::format(R"( stroke-dasharray="{}")", xml_escape(style.dash));
  if (style.opacity < 1) out += fmt::format(R"( opacity="{}")", number(style.opacity));
  return out;
}

std::string points_attribute(std::span<const Pixel> points) {
  std::string out;
  for (const Pixel& p : points) {
    if (!out.empty()) out += ' ';
    out += number(p.x) + ',' + number(p.y);
  }
  return out;
}

std::string_view name_of(Anchor anchor) {
  switch (anchor) {
    case Anchor::start:
      return "start";
    case Anchor::middle:
      return "middle";
    case Anchor::end:
      return "end";
  }
  return "start";
}

}  // namespace

std::string xml_escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&apos;";
        break;
      default:
        out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return out;
}

Svg::Svg(double width, double height, std::string_view title) {
  check_positive("svg", "width", width);
  check_positive("svg", "height", height);
  body_ = fmt::format(
      R"(<svg xmlns="http://www.w3.org/2000/svg" width="{0}" height="{1}" viewBox="0 0 {0} {1}")"
      R"( role="img" stroke-linejoin="round" stroke-linecap="round")"
      R"( font-family="Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif">)"
      "\n<title>{2}</title>\n",
      number(width), number(height), xml_escape(title));
  rect({0.5, 0.5, width - 1, height - 1}, {.fill = "#FFFFFF", .stroke = "#DDDDDD"}, 8);
}

void Svg::line(Pixel from, Pixel to, const ShapeStyle& style) {
  body_ += fmt::format("<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"{}/>\n", number(from.x),
                       number(from.y), number(to.x), number(to.y), attributes(style));
}

void Svg::polyline(std::span<const Pixel> points, const ShapeStyle& style) {
  body_ +=
      fmt::format("<polyline points=\"{}\"{}/>\n", points_attribute(points), attributes(style));
}

void Svg::polygon(std::span<const Pixel> points, const ShapeStyle& style) {
  body_ += fmt::format("<polygon points=\"{}\"{}/>\n", points_attribute(points), attributes(style));
}

void Svg::rect(const Box& box, const ShapeStyle& style, double corner) {
  body_ += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"{}\"{}/>\n",
                       number(box.left), number(box.top), number(box.width), number(box.height),
                       number(corner), attributes(style));
}

void Svg::circle(Pixel center, double radius, const ShapeStyle& style) {
  body_ += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"{}\"{}/>\n", number(center.x),
                       number(center.y), number(radius), attributes(style));
}

void Svg::ellipse(Pixel center, double half_a, double half_b, double rotate,
                  const ShapeStyle& style) {
  body_ +=
      fmt::format("<ellipse rx=\"{}\" ry=\"{}\" transform=\"translate({} {}) rotate({})\"{}/>\n",
                  number(half_a), number(half_b), number(center.x), number(center.y),
                  number(rotate), attributes(style));
}

void Svg::text(Pixel at, std::string_view content, const TextStyle& style) {
  std::string extra;
  if (style.bold) extra += " font-weight=\"bold\"";
  if (style.rotate != 0) {
    extra += fmt::format(" transform=\"rotate({} {} {})\"", number(style.rotate), number(at.x),
                         number(at.y));
  }
  std::string raised;
  if (!style.exponent.empty()) {
    raised = fmt::format("<tspan dy=\"{}\" font-size=\"{}\">{}</tspan>", number(-0.4 * style.size),
                         number(0.75 * style.size), xml_escape(style.exponent));
  }
  body_ += fmt::format(
      "<text x=\"{}\" y=\"{}\" font-size=\"{}\" text-anchor=\"{}\" fill=\"{}\"{}>{}{}</text>\n",
      number(at.x), number(at.y), number(style.size), name_of(style.anchor), xml_escape(style.fill),
      extra, xml_escape(content), raised);
}

void Svg::begin_clip(const Box& box) {
  const int id = ++clips_;
  body_ += fmt::format("<clipPath id=\"clip{}\">", id);
  rect(box, {.fill = "#000000"});
  body_ += fmt::format("</clipPath>\n<g clip-path=\"url(#clip{})\">\n", id);
}

void Svg::end_clip() { body_ += "</g>\n"; }

std::string Svg::str() const { return body_ + "</svg>\n"; }

}  // namespace fedep
