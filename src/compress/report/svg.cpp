// SPDX-License-Identifier: Apache-2.0
#include "compress/report/svg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace spud::compress::report {
namespace {

std::string tip_element(std::string_view tip) {
  return tip.empty() ? std::string() : fmt::format("<title>{}</title>", escape(tip));
}

}  // namespace

std::string escape(std::string_view text) {
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
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

Svg::Svg(double width, double height, std::string_view label)
    : body_(fmt::format("<svg viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"{}\">\n",
                        width, height, escape(label))) {}

void Svg::line(double x1, double y1, double x2, double y2, std::string_view css) {
  body_ +=
      fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" class=\"{}\"/>\n",
                  x1, y1, x2, y2, css);
}

void Svg::circle(double x, double y, double radius, std::string_view css, std::string_view tip) {
  body_ +=
      fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" class=\"{}\">{}</circle>\n", x,
                  y, radius, css, tip_element(tip));
}

void Svg::rect(double x, double y, double width, double height, std::string_view css,
               std::string_view tip) {
  body_ += fmt::format(
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" class=\"{}\">{}</rect>\n",
      x, y, std::max(width, 0.0), std::max(height, 0.0), css, tip_element(tip));
}

void Svg::text(double x, double y, std::string_view words, Anchor anchor, std::string_view css) {
  constexpr std::string_view kAnchors[] = {"start", "middle", "end"};
  body_ +=
      fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" class=\"{}\">{}</text>\n", x,
                  y, kAnchors[static_cast<std::size_t>(anchor)], css, escape(words));
}

std::string Svg::finish() && { return std::move(body_) + "</svg>\n"; }

Axis make_axis(double low, double high, int count) {
  if (!(high > low)) high = low + 1;
  const double rough = (high - low) / std::max(count, 1);
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) {
      step = factor * power;
      break;
    }
  }
  const int digits = std::max(0, static_cast<int>(std::ceil(-std::log10(step) - 1e-9)));
  return {.low = std::floor(low / step + 1e-9) * step,
          .high = std::ceil(high / step - 1e-9) * step,
          .step = step,
          .digits = digits};
}

}  // namespace spud::compress::report
