#include "bitfed/report/charts/charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "bitfed/report/charts/axis.h"
#include "bitfed/report/humanise.h"
#include "bitfed/report/markup.h"

namespace bitfed {
namespace {

constexpr double kWidth = 480;
constexpr Box kPlot{50, 14, 414, 236};
constexpr double kLegendTop = 304;
constexpr double kLegendRow = 20;
constexpr size_t kLongestName = 44;
constexpr size_t kMaxMarkers = 30;  // more would hide the line

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  double step = 1;

  bool empty() const { return low > high; }
  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

// Widens the range to whole steps. One value alone gets a step to each side, within [0, highest].
void round_outwards(Range& y, double highest) {
  const double span = std::max(y.high - y.low, 0.02);
  y.step = nice_step(span, 4);
  y.low = std::floor(y.low / y.step + 1e-9) * y.step;
  y.high = std::ceil(y.high / y.step - 1e-9) * y.step;
  if (y.high - y.low < 1.5 * y.step) {
    y.low = std::max(0.0, y.low - y.step);
    y.high = std::min(highest, y.high + y.step);
  }
}

class Canvas {
 public:
  explicit Canvas(const LineChart& chart)
      : chart_(chart),
        svg_(kWidth, kLegendTop + kLegendRow * static_cast<double>(chart.series.size()), chart.title) {
    for (const Series& series : chart.series) names_.push_back(series.name);
    names_ = shorten_apart(names_, kLongestName);
    for (const Series& series : chart.series) {
      for (const Point& point : series.points) {
        if (!std::isfinite(point.y)) continue;
        x_.add(point.x);
        y_.add(point.y);
      }
    }
  }

  std::string draw() {
    if (y_.empty()) {
      svg_.text({kPlot.x + kPlot.width / 2, kPlot.y + kPlot.height / 2},
                chart_.is_fraction ? "no accuracy was measured" : "nothing was measured",
                {.paint = kMuted, .anchor = Anchor::kMiddle});
    } else {
      round_outwards(y_, chart_.is_fraction ? 1.0 : std::numeric_limits<double>::infinity());
      x_.step = std::max(1.0, nice_step(std::max(x_.high - x_.low, 1.0), 7));
      draw_axes();
    }
    for (size_t i = 0; i < chart_.series.size(); ++i) draw_series(i);
    return svg_.finish();
  }

 private:
  std::string y_text(double value) const {
    return chart_.is_fraction ? percent(value) : fmt::format("{:.3g}", value);
  }

  std::string tick_text(double value) const {
    if (!chart_.is_fraction) return fmt::format("{:.4g}", value);
    return fmt::format("{:.{}f} %", value * 100, y_.step < 0.00999 ? 1 : 0);
  }

  Point place(const Point& point) const {
    const double width = x_.high - x_.low;
    const double across = width > 0 ? (point.x - x_.low) / width : 0.5;
    return {kPlot.x + across * kPlot.width,
            kPlot.y + (y_.high - point.y) / (y_.high - y_.low) * kPlot.height};
  }

  void draw_axes() {
    const auto steps = static_cast<int>(std::lround((y_.high - y_.low) / y_.step));
    for (int i = 0; i <= steps; ++i) {
      const double value = y_.low + i * y_.step;
      const double at = place({x_.low, value}).y;
      svg_.line({kPlot.x, at}, {kPlot.x + kPlot.width, at}, kGrid);
      svg_.text({kPlot.x - 8, at + 4}, tick_text(value), {.paint = kMuted, .anchor = Anchor::kEnd});
    }
    const double below = kPlot.y + kPlot.height;
    for (double tick = std::ceil(x_.low / x_.step) * x_.step; tick <= x_.high; tick += x_.step) {
      svg_.text({place({tick, y_.low}).x, below + 18}, exact_number(tick),
                {.paint = kMuted, .anchor = Anchor::kMiddle});
    }
    svg_.text({kPlot.x + kPlot.width, below + 36}, chart_.x_name, {.paint = kMuted, .anchor = Anchor::kEnd});
  }

  void draw_series(size_t index) {
    const Series& series = chart_.series[index];
    const Paint paint = series_paint(index);
    const LineStyle style{.width = 2.25, .dash = series_dash(index)};
    std::vector<Point> measured;
    std::copy_if(series.points.begin(), series.points.end(), std::back_inserter(measured),
                 [](const Point& point) { return std::isfinite(point.y); });
    std::vector<Point> placed;
    for (const Point& point : measured) placed.push_back(place(point));
    if (placed.size() > 1) svg_.polyline(placed, paint, style);
    if (placed.size() <= kMaxMarkers) {
      for (size_t i = 0; i < placed.size(); ++i) {
        svg_.circle(placed[i], 3.25, paint,
                    fmt::format("{}, {} {}: {}", series.name, chart_.x_name, exact_number(measured[i].x),
                                y_text(measured[i].y)));
      }
    }
    draw_legend(index, measured.empty() ? "–" : y_text(measured.back().y));
  }

  void draw_legend(size_t index, const std::string& last) {
    const double at = kLegendTop + kLegendRow * static_cast<double>(index);
    svg_.line({kPlot.x, at}, {kPlot.x + 22, at}, series_paint(index),
              {.width = 3, .dash = series_dash(index)});
    svg_.text({kPlot.x + 32, at + 4}, names_[index]);
    svg_.text({kPlot.x + kPlot.width, at + 4}, last, {.anchor = Anchor::kEnd, .bold = true});
  }

  const LineChart& chart_;
  std::vector<std::string> names_;  // of the series
  SvgWriter svg_;
  Range x_;
  Range y_;
};

}  // namespace

std::string line_chart(const LineChart& chart) {
  return Canvas(chart).draw();
}

}  // namespace bitfed
