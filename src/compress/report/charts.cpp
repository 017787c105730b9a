// SPDX-License-Identifier: Apache-2.0
#include "compress/report/charts.hpp"

#include <algorithm>

#include "compress/report/figures.hpp"
#include "compress/report/svg.hpp"
#include "console/text.hpp"

namespace spud::compress::report {
namespace {

using Anchor = Svg::Anchor;

constexpr double kWidth = 760;

// Data to picture coordinates, with frame, grid and tick labels.
struct Frame {
  double left = 64, top = 16, width = kWidth - 84, height = 260;
  Axis x, y;

  double px(double value) const { return left + (value - x.low) / (x.high - x.low) * width; }
  double py(double value) const {
    return top + height - (value - y.low) / (y.high - y.low) * height;
  }
  void draw(Svg& svg, std::string_view x_title, std::string_view y_title) const {
    for (double v = y.low; v <= y.high + y.step / 2; v += y.step) {
      svg.line(left, py(v), left + width, py(v), "grid");
      svg.text(left - 8, py(v) + 4, fmt::format("{:.{}f}", v, y.digits), Anchor::kEnd, "tick");
    }
    for (double v = x.low; v <= x.high + x.step / 2; v += x.step) {
      svg.text(px(v), top + height + 18, fmt::format("{:.{}f}", v, x.digits), Anchor::kMiddle,
               "tick");
    }
    svg.line(left, top + height, left + width, top + height, "axis");
    svg.text(left + width, top + height + 36, x_title, Anchor::kEnd, "label");
    svg.text(left, top - 4, y_title, Anchor::kStart, "label");
  }
};

struct Point {
  std::string name;
  double megabytes;
  const quality::Finding* ratio;
  bool accepted;
};

std::vector<Point> measured_points(const Journal& journal) {
  std::vector<Point> points;
  for (const StepRecord& step : journal.steps) {
    for (const Attempt& attempt : step.attempts) {
      const quality::Finding* ratio = find_finding(attempt, "ppl_ratio");
      if (ratio == nullptr) continue;
      points.push_back({.name = step.pass + " " + attempt_name(attempt),
                        .megabytes = static_cast<double>(attempt.bytes) / 1e6,
                        .ratio = ratio,
                        .accepted = attempt.decision == Decision::kAccepted});
    }
  }
  return points;
}

Frame frame_for(const std::vector<Point>& points, double original_megabytes) {
  double low = 1;
  double high = 1.01;
  for (const Point& p : points) {
    low = std::min(low, p.ratio->lower);
    high = std::max({high, p.ratio->upper, std::isfinite(p.ratio->limit) ? p.ratio->limit : 0});
  }
  Frame frame;
  frame.top = 28;
  frame.x = make_axis(0, original_megabytes * 1.02, 6);
  frame.y = make_axis(low, high, 6);
  return frame;
}

// Points can lie close together: each label goes to the first height at which it touches no other.
class LabelPlacer {
 public:
  double place(double x, double y) {
    double at = y;
    const auto touches = [&](const std::pair<double, double>& other) {
      return std::abs(other.first - x) < 150 && std::abs(other.second - at) < 14;
    };
    while (std::ranges::any_of(placed_, touches)) at -= 14;
    placed_.emplace_back(x, at);
    return at;
  }

 private:
  std::vector<std::pair<double, double>> placed_;
};

struct Stage {
  std::string name;
  double megabytes = 0;
  double prefill = 1, decode = 1;  // of the original's speed
  bool timed = false;
};

// Ratios are against the artifact before: multiplied up they are against the original.
std::vector<Stage> accepted_stages(const Journal& journal) {
  std::vector<Stage> stages{{.name = "original",
                             .megabytes = static_cast<double>(journal.original_bytes) / 1e6,
                             .timed = true}};
  for (const StepRecord& step : journal.steps) {
    for (const Attempt& attempt : step.attempts) {
      if (attempt.decision != Decision::kAccepted) continue;
      const Stage& before = stages.back();
      stages.push_back(
          {.name = step.pass + " " + attempt_name(attempt),
           .megabytes = static_cast<double>(attempt.bytes) / 1e6,
           .prefill = before.prefill * (attempt.speed ? attempt.speed->prefill.estimate : 1),
           .decode = before.decode * (attempt.speed ? attempt.speed->decode.estimate : 1),
           .timed = attempt.speed.has_value()});
    }
  }
  return stages;
}

void draw_bar(Svg& svg, double y, double x, double length, std::string_view css,
              const std::string& words) {
  svg.rect(x, y, length, 16, css, words);
  svg.text(x + length + 6, y + 13, words, Anchor::kStart, "tick");
}

}  // namespace

std::string size_quality_chart(const Journal& journal) {
  const double original = static_cast<double>(journal.original_bytes) / 1e6;
  const std::vector<Point> points = measured_points(journal);
  const Frame frame = frame_for(points, original);
  Svg svg(kWidth, frame.top + frame.height + 48, "File size against perplexity ratio");
  frame.draw(svg, "file size, MB", "perplexity / original's");
  std::vector<double> limits;
  for (const Point& p : points) {
    if (std::isfinite(p.ratio->limit) &&
        std::ranges::find(limits, p.ratio->limit) == limits.end()) {
      limits.push_back(p.ratio->limit);
    }
  }
  for (const double limit : limits) {
    svg.line(frame.left, frame.py(limit), frame.left + frame.width, frame.py(limit), "margin");
    svg.text(frame.left + 6, frame.py(limit) - 4, fmt::format("margin {:.3f}", limit),
             Anchor::kStart, "margin-label");
  }
  LabelPlacer labels;
  svg.circle(frame.px(original), frame.py(1), 5, "original", "original");
  svg.text(frame.px(original), frame.py(1) + 20, "original", Anchor::kMiddle, "tick");
  for (const Point& p : points) {
    const double x = frame.px(p.megabytes);
    const std::string_view css = p.accepted ? "good" : "bad";
    svg.line(x, frame.py(p.ratio->lower), x, frame.py(p.ratio->upper), css);
    svg.line(x - 4, frame.py(p.ratio->lower), x + 4, frame.py(p.ratio->lower), css);
    svg.line(x - 4, frame.py(p.ratio->upper), x + 4, frame.py(p.ratio->upper), css);
    svg.circle(x, frame.py(p.ratio->estimate), 5, css, p.ratio->sentence);
    svg.text(x + 10, labels.place(x, frame.py(p.ratio->estimate) + 4), p.name, Anchor::kStart,
             "tick");
  }
  return std::move(svg).finish();
}

std::string waterfall_chart(const Journal& journal) {
  const std::vector<Stage> stages = accepted_stages(journal);
  double fastest = 1;
  for (const Stage& s : stages) fastest = std::max({fastest, s.prefill, s.decode});
  constexpr double kLeft = 130;
  constexpr double kHalf = 215;  // of each bar area
  constexpr double kRight = kLeft + kHalf + 105;
  constexpr double kRow = 52;
  Svg svg(kWidth, 30 + kRow * static_cast<double>(stages.size()), "Size and speed by step");
  svg.text(kLeft, 16, "file size", Anchor::kStart, "label");
  svg.text(kRight, 16, "speed, of the original's (product of the step ratios)", Anchor::kStart,
           "label");
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const Stage& stage = stages[i];
    const double y = 30 + kRow * static_cast<double>(i);
    svg.text(kLeft - 10, y + 24, stage.name, Anchor::kEnd, "tick");
    const double length = kHalf * stage.megabytes / stages.front().megabytes;
    draw_bar(svg, y + 10, kLeft, length, "size", fmt::format("{:.1f} MB", stage.megabytes));
    if (i > 0) {  // what this step took away
      const double before = kHalf * stages[i - 1].megabytes / stages.front().megabytes;
      svg.line(kLeft + before, y - 16, kLeft + before, y + 6, "fall");
    }
    if (!stage.timed) continue;
    const double scale = 190 / fastest;
    draw_bar(svg, y, kRight, scale * stage.prefill, "prefill",
             fmt::format("prefill {:.2f}x", stage.prefill));
    draw_bar(svg, y + 20, kRight, scale * stage.decode, "decode",
             fmt::format("decode {:.2f}x", stage.decode));
  }
  return std::move(svg).finish();
}

}  // namespace spud::compress::report
