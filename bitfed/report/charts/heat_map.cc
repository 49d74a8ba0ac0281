#include "bitfed/report/charts/charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bitfed/report/humanise.h"
#include "bitfed/report/markup.h"

namespace bitfed {
namespace {

constexpr double kCharacter = 6.8;
constexpr size_t kLongestName = 18;
constexpr size_t kMaxLargeCells = 12;  // a side with more gets smaller ones
constexpr double kTotalsHeight = 44;
constexpr double kSmallestRoomForText = 24;
constexpr double kTilt = 40 * 3.14159265358979 / 180;

double longest(const std::vector<std::string>& names) {
  size_t characters = 0;
  for (const std::string& name : names) {
    characters = std::max(characters, std::min(character_count(name), kLongestName));
  }
  return static_cast<double>(characters);
}

double cell_size(size_t count, double large, double room, double least) {
  if (count <= kMaxLargeCells) return large;
  return std::clamp(room / static_cast<double>(count), least, large);
}

// Every how many names there is room for one: 1, 2, 5, 10, 20 …
size_t label_step(double cell, double room) {
  size_t step = 1;
  for (size_t i = 0; static_cast<double>(step) * cell < room; ++i)
    step = i % 3 == 1 ? step / 2 * 5 : step * 2;
  return step;
}

bool is_number(const std::string& name) {
  return name.find_first_not_of("0123456789") == std::string::npos;
}

// Numbers that do not fit are left out; words are tilted first.
bool must_tilt(const std::vector<std::string>& names, double cell) {
  return longest(names) * kCharacter > cell && !std::all_of(names.begin(), names.end(), is_number);
}

std::string cell_text(uint64_t value) {
  return value < 100000 ? fmt::format("{}", value) : fmt::format("{}k", value / 1000);
}

class Canvas {
 public:
  explicit Canvas(const HeatMap& map)
      : map_(map),
        cell_width_(cell_size(map.column_names.size(), 38, 880, 3)),
        cell_height_(cell_size(map.row_names.size(), 30, 500, 11)),
        tilted_(must_tilt(map.column_names, cell_width_)),
        left_(std::max(longest(map.row_names), longest({map.row_axis})) * kCharacter + 14),
        top_(map.column_totals.empty() ? 22 : 30 + kTotalsHeight),
        row_names_(shorten_apart(map.row_names, kLongestName)),
        column_names_(shorten_apart(map.column_names, kLongestName)),
        svg_(full_width(), full_height(), map.title) {}

  std::string draw() {
    draw_names();
    draw_totals();
    for (size_t row = 0; row < map_.values.size(); ++row) {
      for (size_t column = 0; column < map_.values[row].size(); ++column) draw_cell(row, column);
    }
    return svg_.finish();
  }

 private:
  double grid_width() const { return cell_width_ * static_cast<double>(map_.column_names.size()); }
  double grid_height() const { return cell_height_ * static_cast<double>(map_.row_names.size()); }
  double x_of(size_t column) const { return left_ + cell_width_ * static_cast<double>(column); }
  double y_of(size_t row) const { return top_ + cell_height_ * static_cast<double>(row); }
  // At least the room of the axes' names.
  double full_width() const { return std::max(left_ + grid_width() + 6, 240.0); }
  double full_height() const {
    const double names = tilted_ ? longest(map_.column_names) * kCharacter * std::sin(kTilt) + 14 : 18;
    return top_ + grid_height() + names + 24;
  }

  void draw_names() {
    svg_.text({left_ - 8, top_ - 8}, map_.row_axis, {.paint = kMuted, .anchor = Anchor::kEnd});
    svg_.text({left_ + grid_width(), full_height() - 8}, map_.column_axis,
              {.paint = kMuted, .anchor = Anchor::kEnd});
    const double row_size = std::min(12.0, cell_height_ - 1);
    const size_t row_step = label_step(cell_height_, 10);
    for (size_t row = 0; row < map_.row_names.size(); row += row_step) {
      svg_.text({left_ - 8, y_of(row) + cell_height_ / 2 + row_size * 0.35}, row_names_[row],
                {.size = row_size, .anchor = Anchor::kEnd});
    }
    const double room = tilted_ ? 11 : longest(map_.column_names) * kCharacter + 6;
    const size_t column_step = label_step(cell_width_, room);
    for (size_t column = 0; column < map_.column_names.size(); column += column_step)
      draw_column_name(column);
  }

  void draw_column_name(size_t column) {
    const double x = x_of(column) + cell_width_ / 2;
    const double y = top_ + grid_height() + 15;
    const std::string& name = column_names_[column];
    const double size = tilted_ ? std::clamp(cell_width_ - 1, 9.0, 12.0) : 12;
    if (tilted_) {
      svg_.text({x + 4, y - 2}, name, {.size = size, .anchor = Anchor::kEnd, .angle = -40});
    } else {
      svg_.text({x, y + 1}, name, {.size = size, .anchor = Anchor::kMiddle});
    }
  }

  void draw_totals() {
    if (map_.column_totals.empty()) return;
    const auto most = static_cast<double>(
        std::max<uint64_t>(1, *std::max_element(map_.column_totals.begin(), map_.column_totals.end())));
    const double base = top_ - 8;
    for (size_t column = 0; column < map_.column_totals.size(); ++column) {
      const uint64_t total = map_.column_totals[column];
      const double height = static_cast<double>(total) / most * kTotalsHeight;
      svg_.rectangle({x_of(column) + gap(), base - height, cell_width_ - 2 * gap(), height}, kMuted,
                     {.opacity = 0.55,
                      .tooltip = fmt::format("{} {}: {} in all", map_.column_axis, map_.column_names[column],
                                             exact_count(total))});
      if (cell_width_ < kSmallestRoomForText) continue;
      svg_.text({x_of(column) + cell_width_ / 2, base - height - 4}, cell_text(total),
                {.paint = kMuted, .size = 11, .anchor = Anchor::kMiddle});
    }
    svg_.line({left_, base + 0.5}, {left_ + grid_width(), base + 0.5}, kGrid);
  }

  double gap() const { return std::min(1.0, cell_width_ / 10); }

  void draw_cell(size_t row, size_t column) {
    const uint64_t value = map_.values[row][column];
    const bool is_wrong = map_.is_confusion && row != column;
    const double shade = value == 0 ? 0 : std::max(0.04, map_.shades[row][column]);
    const Box box{x_of(column) + gap(), y_of(row) + gap(), cell_width_ - 2 * gap(), cell_height_ - 2 * gap()};
    const double radius = cell_width_ >= kSmallestRoomForText ? 3 : 0;
    if (value == 0) {
      svg_.rectangle(box, kGrid, {.opacity = 0.35, .radius = radius});
      return;
    }
    const std::string tooltip = fmt::format("{} {}, {} {}: {}", map_.row_axis, map_.row_names[row],
                                            map_.column_axis, map_.column_names[column], exact_count(value));
    svg_.rectangle(box, is_wrong ? kContrast : kAccent,
                   {.opacity = shade, .radius = radius, .tooltip = tooltip});
    if (cell_width_ < kSmallestRoomForText || cell_height_ < 14) return;
    svg_.text({box.x + box.width / 2, box.y + box.height / 2 + 4}, cell_text(value),
              {.paint = paint_on(shade), .size = 11, .anchor = Anchor::kMiddle});
  }

  const HeatMap& map_;
  double cell_width_;
  double cell_height_;
  bool tilted_;
  double left_;
  double top_;
  std::vector<std::string> row_names_;
  std::vector<std::string> column_names_;
  SvgWriter svg_;
};

}  // namespace

std::string heat_map(const HeatMap& map) {
  return Canvas(map).draw();
}

bool is_wide_heat_map(size_t columns) {
  return columns > kMaxLargeCells;
}

}  // namespace bitfed
