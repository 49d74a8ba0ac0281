#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "bitfed/report/charts/axis.h"
#include "bitfed/report/charts/charts.h"
#include "bitfed/report/markup.h"

namespace bitfed {
namespace {

constexpr double kWidth = 520;
constexpr double kRight = 14;
constexpr double kLane = 10;  // of one series within a row's band
constexpr double kGap = 8;    // between the bands
constexpr double kLegendRow = 20;
constexpr double kAxis = 24;        // below the plot
constexpr double kCharacter = 6.6;  // the width of one, about, at the size of the labels
constexpr size_t kLongestLabel = 26;

class RangeCanvas {
 public:
  explicit RangeCanvas(const RangeChart& chart)
      : chart_(chart),
        left_(label_width(chart.rows) + 12),
        right_(kWidth - kRight - (chart.row_notes.empty() ? 0 : label_width(chart.row_notes) + 4)),
        top_(kLegendRow * static_cast<double>(chart.series.size()) + 8),
        rows_(shorten_apart(chart.rows, kLongestLabel)),
        svg_(kWidth, top_ + plot_height() + kAxis, chart.title) {
    find_scale();
  }

  std::string draw() {
    if (low_ > high_) {
      svg_.text({0, top_ + 14}, "nothing was measured", {.paint = kMuted});
      return svg_.finish();
    }
    draw_axis();
    for (size_t s = 0; s < chart_.series.size(); ++s) draw_legend(s);
    for (size_t row = 0; row < chart_.rows.size(); ++row) draw_row(row);
    return svg_.finish();
  }

 private:
  static double label_width(const std::vector<std::string>& labels) {
    size_t characters = 0;
    for (const std::string& label : labels) characters = std::max(characters, character_count(label));
    return kCharacter * static_cast<double>(std::min(characters, kLongestLabel));
  }

  double lane_of(size_t series) const { return chart_.is_joined ? 0 : static_cast<double>(series); }
  double band() const {
    return kLane * (chart_.is_joined ? 1 : static_cast<double>(chart_.series.size())) + kGap;
  }
  double plot_height() const { return band() * static_cast<double>(chart_.rows.size()); }
  double x_of(double value) const { return left_ + (value - low_) / (high_ - low_) * (right_ - left_); }
  Paint paint_of(size_t series) const {
    if (chart_.series[series].is_reference) return kMuted;
    // The references come first and take no colour.
    const auto references =
        std::count_if(chart_.series.begin(), chart_.series.begin() + static_cast<long>(series),
                      [](const RangeSeries& s) { return s.is_reference; });
    return series_paint(series - static_cast<size_t>(references));
  }

  // From the lowest whisker to the highest, widened to whole steps.
  void find_scale() {
    for (const RangeSeries& series : chart_.series) {
      for (const auto& mark : series.marks) {
        if (!mark) continue;
        low_ = std::min(low_, mark->mean - mark->deviation);
        high_ = std::max(high_, mark->mean + mark->deviation);
      }
    }
    if (low_ > high_) return;
    if (chart_.from_zero) low_ = 0;
    step_ = nice_step(std::max({high_ - low_, 1e-6, 1e-3 * std::abs(high_)}), 5);
    low_ = std::floor(low_ / step_ + 1e-9) * step_;
    high_ = std::max(std::ceil(high_ / step_ - 1e-9) * step_, low_ + step_);
  }

  void draw_axis() {
    const double bottom = top_ + plot_height();
    const auto steps = static_cast<int>(std::lround((high_ - low_) / step_));
    for (int i = 0; i <= steps; ++i) {
      const double value = low_ + step_ * i;
      svg_.line({x_of(value), top_}, {x_of(value), bottom}, kGrid);
      const std::string unit = i == steps ? " " + chart_.unit : "";
      svg_.text({x_of(value), bottom + 16}, fmt::format("{:g}{}", value, unit),
                {.paint = kMuted, .size = 11, .anchor = i == steps ? Anchor::kEnd : Anchor::kMiddle});
    }
  }

  void draw_legend(size_t series) {
    const double y = kLegendRow * static_cast<double>(series) + 10;
    svg_.line({left_, y}, {left_ + 22, y}, paint_of(series), {.width = 1.5});
    svg_.circle({left_ + 11, y}, 4, paint_of(series));
    svg_.text({left_ + 30, y + 4}, chart_.series[series].name);
  }

  void draw_row(size_t row) {
    const double top = top_ + band() * static_cast<double>(row);
    const double middle = top + band() / 2;
    if (row > 0 && !chart_.is_joined) svg_.line({0, top}, {kWidth - kRight, top}, kGrid);
    svg_.text({0, middle + 4}, rows_[row]);
    if (!chart_.row_notes.empty())
      svg_.text({kWidth, middle + 4}, chart_.row_notes[row], {.anchor = Anchor::kEnd});
    if (chart_.is_joined) draw_join(row, middle);
    for (size_t s = 0; s < chart_.series.size(); ++s) {
      const auto& mark = chart_.series[s].marks[row];
      if (mark) draw_mark(row, s, *mark, top + kGap / 2 + kLane * (lane_of(s) + 0.5));
    }
  }

  void draw_join(size_t row, double y) {
    svg_.line({left_, y}, {right_, y}, kGrid);
    double from = std::numeric_limits<double>::infinity();
    double to = -from;
    for (const RangeSeries& series : chart_.series) {
      if (!series.marks[row]) continue;
      from = std::min(from, series.marks[row]->mean);
      to = std::max(to, series.marks[row]->mean);
    }
    if (from < to) svg_.line({x_of(from), y}, {x_of(to), y}, kMuted, {.width = 2.5});
  }

  std::string tooltip(size_t row, size_t series, const RangeMark& mark) const {
    const std::string spread =
        chart_.is_joined ? "" : fmt::format(" ± {:.{}f}", mark.deviation, chart_.decimals);
    return fmt::format("{}, {}: {:.{}f}{} {}", chart_.rows[row], chart_.series[series].name, mark.mean,
                       chart_.decimals, spread, chart_.unit);
  }

  void draw_mark(size_t row, size_t series, const RangeMark& mark, double y) {
    const Paint paint = paint_of(series);
    if (mark.deviation > 0) {
      const double from = x_of(std::max(low_, mark.mean - mark.deviation));
      const double to = x_of(mark.mean + mark.deviation);
      svg_.line({from, y}, {to, y}, paint, {.width = 1.5});
      for (const double end : {from, to}) svg_.line({end, y - 3}, {end, y + 3}, paint, {.width = 1.5});
    }
    svg_.circle({x_of(mark.mean), y}, 4, paint, tooltip(row, series, mark));
  }

  const RangeChart& chart_;
  double left_;
  double right_;
  double top_;
  std::vector<std::string> rows_;
  SvgWriter svg_;
  double low_ = std::numeric_limits<double>::infinity();
  double high_ = -std::numeric_limits<double>::infinity();
  double step_ = 1;
};

}  // namespace

std::string range_chart(const RangeChart& chart) {
  return RangeCanvas(chart).draw();
}

}  // namespace bitfed
