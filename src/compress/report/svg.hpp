// SPDX-License-Identifier: Apache-2.0
// Builds one inline SVG picture. Colours and fonts come from CSS classes of the page around it, so
// that a picture fits light and dark. Text is escaped here. Not a plotting library: charts.cpp
// draws.
#pragma once

#include <string>
#include <string_view>

namespace spud::compress::report {

// &, <, >, " and ' replaced: safe in text and attributes.
std::string escape(std::string_view text);

class Svg {
 public:
  // `label` is what a screen reader says.
  Svg(double width, double height, std::string_view label);

  void line(double x1, double y1, double x2, double y2, std::string_view css);
  void circle(double x, double y, double radius, std::string_view css, std::string_view tip = {});
  void rect(double x, double y, double width, double height, std::string_view css,
            std::string_view tip = {});
  enum class Anchor { kStart, kMiddle, kEnd };
  void text(double x, double y, std::string_view words, Anchor anchor, std::string_view css = {});
  std::string finish() &&;

 private:
  std::string body_;
};

// Round numbers that cover [low, high]: axis ticks, at most `count`.
struct Axis {
  double low = 0;
  double high = 1;
  double step = 1;
  int digits = 0;  // to print a tick
};
Axis make_axis(double low, double high, int count);

}  // namespace spud::compress::report
