#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bitfed/report/charts/svg.h"

namespace bitfed {

struct Series {
  std::string name;
  std::vector<Point> points;  // ascending x; a y that is not finite was not measured and is skipped
};

struct LineChart {
  std::string title;
  std::string x_name;
  std::vector<Series> series;
  bool is_fraction = true;  // y: fractions of one, shown as per cent; else plain numbers
};

std::string line_chart(const LineChart& chart);

struct Bar {
  std::string label;
  double value = 0;
  std::string text;     // the value for people
  std::string tooltip;  // the exact one
  size_t colour = 0;    // as series_paint() counts
};

// Horizontal bars. `full` is the value of a bar of full length; 0: the largest among the bars.
std::string bar_chart(const std::string& title, const std::vector<Bar>& bars, double full = 0);

struct RangeMark {
  double mean = 0;
  double deviation = 0;  // standard deviation: whiskers to both sides; 0: none
};

struct RangeSeries {
  std::string name;
  bool is_reference = false;                    // what the others are compared with: drawn muted
  std::vector<std::optional<RangeMark>> marks;  // one per row; empty: not measured
};

struct RangeChart {
  std::string title;
  std::string unit;
  int decimals = 2;
  bool from_zero = false;
  std::vector<std::string> rows;
  std::vector<RangeSeries> series;
  bool is_joined = false;                   // a row's dots lie on one line, which joins them
  std::vector<std::string> row_notes = {};  // at the right end of the rows; empty: none
};

// Dots with whiskers on a common scale: a band for each row, in it a dot for each series.
std::string range_chart(const RangeChart& chart);

struct HeatMap {
  std::string title;
  std::string row_axis;
  std::string column_axis;
  std::vector<std::string> row_names;
  std::vector<std::string> column_names;
  std::vector<std::vector<uint64_t>> values;  // one vector per row, as long as column_names
  std::vector<std::vector<double>> shades;    // the same shape, in [0, 1]
  std::vector<uint64_t> column_totals;        // bars above the columns; empty: none
  bool is_confusion = false;                  // what lies off the diagonal takes the contrast colour
};

// Cells where the value is zero stay empty; numbers stand in the cells where there is room.
std::string heat_map(const HeatMap& map);

// True where the picture needs the width of a page rather than half of it.
bool is_wide_heat_map(size_t columns);

}  // namespace bitfed
