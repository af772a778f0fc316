#include "fedep/page/figure/toy_figure.h"

#include <cctype>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "fedep/message/error.h"
#include "fedep/page/figure/svg.h"
#include "fedep/page/test_text.h"

namespace fedep {
namespace {

// Well-formed as far as these documents go: every tag closed in order, every attribute quoted and
// given once, no bare & or < in text, one root. Returns what is wrong, or nothing.
std::string xml_fault(std::string_view xml) {
  std::vector<std::string> open;
  std::size_t roots = 0, at = 0;
  while (at < xml.size()) {
    if (xml[at] == '&') {
      const auto end = xml.find(';', at);
      if (end == std::string_view::npos || end - at > 6) return "bare &";
    }
    if (xml[at] != '<') {
      if (open.empty() && !std::isspace(static_cast<unsigned char>(xml[at]))) return "text outside";
      ++at;
      continue;
    }
    const auto end = xml.find('>', at);
    if (end == std::string_view::npos) return "unclosed <";
    std::string tag(xml.substr(at + 1, end - at - 1));
    at = end + 1;
    if (tag.find('<') != std::string::npos) return "bare <";
    if (tag.front() == '/') {
      if (open.empty() || open.back() != tag.substr(1))
        return "unexpected </" + tag.substr(1) + ">";
      open.pop_back();
      continue;
    }
    const bool empty_element = tag.back() == '/';
    if (empty_element) tag.pop_back();
    std::size_t i = tag.find_first_of(" \n");
    const std::string name = tag.substr(0, i);
    std::vector<std::string> seen;
    while (i != std::string::npos && (i = tag.find_first_not_of(" \n", i)) != std::string::npos) {
      const auto equals = tag.find("=\"", i);
      if (equals == std::string::npos) return "attribute without value in " + name;
      const auto close = tag.find('"', equals + 2);
      if (close == std::string::npos) return "unclosed quote in " + name;
      const std::string attribute = tag.substr(i, equals - i);
      for (const auto& other : seen) {
        if (other == attribute) return "attribute twice: " + attribute;
      }
      seen.push_back(attribute);
      i = close + 1;
    }
    if (open.empty()) ++roots;
    if (!empty_element) open.push_back(name);
  }
  if (!open.empty()) return "unclosed <" + open.back() + ">";
  return roots == 1 ? "" : "not one root";
}

ToyContours contours() {
  return {{{{7, -10.6}, 11, 3.5, -5.3}, {{0.2, 2.24}, 5, 5.5, 4.9}},
          {-4.8, -3.6},
          {3.6, -4.2},
          {2.3, -5.6},
          {{2.3, -5.6}, {-5.4, -4.5}, {-6.3, -3.2}, {-4.6, -3.3}}};
}

ToyCurves curves(std::size_t rounds) {
  ToyCurves out;
  out.trials = 200;
  out.fed_avg.assign(rounds, 0.5);
  out.fed_pa.assign(rounds, 0.25);
  for (std::size_t i = 0; i < rounds; ++i) {
    out.fed_ep.push_back(std::pow(10.0, -double(i)));
    out.fed_ep_identity.push_back(std::pow(10.0, -0.5 * double(i)));
  }
  return out;
}

TEST(XmlFault, FindsFaults) {
  EXPECT_EQ(xml_fault("<a b=\"1\"><c/></a>\n"), "");
  EXPECT_NE(xml_fault("<a><b></a></b>"), "");
  EXPECT_NE(xml_fault("<a>"), "");
  EXPECT_NE(xml_fault("<a b=1></a>"), "");
  EXPECT_NE(xml_fault("<a b=\"1\" b=\"2\"/>"), "");
  EXPECT_NE(xml_fault("<a>x & y</a>"), "");
  EXPECT_NE(xml_fault("<a/><b/>"), "");
}

TEST(SvgWriter, WritesWellFormedDocumentsWhateverTheTextIs) {
  Svg svg(100, 50, "a < b & \"c\" > 'd'\x01");
  svg.begin_clip({0, 0, 10, 10});
  svg.line({0, 0}, {1, 1}, {.stroke = "#000000", .dash = "2 2", .opacity = 0.5});
  svg.end_clip();
  svg.text({1, 2}, "<10>", {.bold = true, .rotate = -90, .exponent = "<&>"});
  const std::string document = svg.str();
  EXPECT_EQ(xml_fault(document), "");
  EXPECT_NE(document.find("a &lt; b &amp; &quot;c&quot; &gt; &apos;d&apos; "), std::string::npos);
}

TEST(SvgWriter, WritesShortNumbers) {
  Svg svg(100, 50, "t");
  svg.circle({1.0 / 3, -0.001}, 2.5, {.fill = "#000000"});
  EXPECT_NE(svg.str().find("cx=\"0.33\" cy=\"0\" r=\"2.5\""), std::string::npos);
}

TEST(SvgWriter, RefusesWhatHasNoPlace) {
  Svg svg(100, 50, "t");
  EXPECT_THROW(svg.circle({NAN, 0}, 1, {}), InputError);
  EXPECT_THROW(svg.line({0, HUGE_VAL}, {0, 0}, {}), InputError);
  EXPECT_THROW(Svg(0, 50, "t"), InputError);
}

TEST(ToyContoursFigure, ShowsBothClientsTheEstimatesAndThePath) {
  const std::string svg = draw_toy_contours(contours());
  EXPECT_EQ(xml_fault(svg), "");
  for (const auto* name : {"client 1", "client 2", "FedAvg", "FedPA", "FedEP, 4 steps", "exact"}) {
    EXPECT_NE(svg.find(name), std::string::npos) << name;
  }
  EXPECT_EQ(count(svg, "<ellipse"), 8u);  // two clients, one and two sigma, filled and outlined
}

TEST(ToyContoursFigure, DrawsAPathOfAnyLength) {
  for (const std::size_t length : {0u, 1u, 2u, 3u}) {
    ToyContours few = contours();
    few.path.resize(length);
    EXPECT_EQ(xml_fault(draw_toy_contours(few)), "");
  }
}

TEST(ToyContoursFigure, RefusesAVarianceThatIsNotPositive) {
  ToyContours flat = contours();
  flat.clients[0].var_x = 0;
  EXPECT_THROW(draw_toy_contours(flat), InputError);
}

TEST(ToyDistanceFigure, ShowsTheFourMethodsOnALogAxis) {
  const std::string svg = draw_toy_distances(curves(15));
  EXPECT_EQ(xml_fault(svg), "");
  for (const auto* name : {">FedAvg<", ">FedPA<", ">FedEP<", ">FedEP, scaled identity<", ">round<",
                           "average of 200 trials", ">−14</tspan>"}) {
    EXPECT_NE(svg.find(name), std::string::npos) << name;
  }
  EXPECT_EQ(count(svg, "<polyline"), 4u);
}

TEST(ToyDistanceFigure, DrawsOneRoundAndDistancesOfZero) {
  EXPECT_EQ(xml_fault(draw_toy_distances(curves(1))), "");
  ToyCurves zero = curves(3);
  zero.fed_ep.assign(3, 0.0);
  EXPECT_EQ(xml_fault(draw_toy_distances(zero)), "");
  ToyCurves nothing{{0.0}, {0.0}, {0.0}, {0.0}, 1};
  EXPECT_EQ(xml_fault(draw_toy_distances(nothing)), "");
}

TEST(ToyDistanceFigure, RefusesCurvesItCannotDraw) {
  EXPECT_THROW(draw_toy_distances(ToyCurves{}), InputError);
  ToyCurves uneven = curves(5);
  uneven.fed_pa.pop_back();
  EXPECT_THROW(draw_toy_distances(uneven), InputError);
  ToyCurves nan = curves(5);
  nan.fed_ep[2] = NAN;
  EXPECT_THROW(draw_toy_distances(nan), InputError);
}

}  // namespace
}  // namespace fedep
