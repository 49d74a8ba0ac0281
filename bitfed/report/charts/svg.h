#pragma once

#include <span>
#include <string>
#include <string_view>

#include "bitfed/report/charts/palette.h"

namespace bitfed {

struct Point {
  double x = 0;
  double y = 0;
};

struct Box {
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;
};

enum class Anchor { kStart, kMiddle, kEnd };

struct TextStyle {
  Paint paint = kInk;
  double size = 12;
  Anchor anchor = Anchor::kStart;
  bool bold = false;
  double angle = 0;  // degrees, clockwise, about the text's point
};

struct ShapeStyle {
  double opacity = 1;
  double radius = 0;              // of a rectangle's corners
  std::string_view tooltip = {};  // shown on hovering; empty: none
};

struct LineStyle {
  double width = 1;
  std::string_view dash = {};  // as stroke-dasharray; empty: solid
};

// A coordinate: at most two decimals, no trailing zeros.
std::string svg_number(double value);

// Writes one picture, shape by shape. All strings are escaped here; the result is well-formed XML that
// stands alone (on white) as well as inside a page.
class SvgWriter {
 public:
  // `title` is for screen readers.
  SvgWriter(double width, double height, std::string_view title);

  void rectangle(const Box& box, const Paint& fill, const ShapeStyle& style = {});
  void outline(const Box& box, const Paint& stroke, const LineStyle& style = {});
  void circle(Point centre, double radius, const Paint& fill, std::string_view tooltip = {});
  void polygon(std::span<const Point> corners, const Paint& fill, double opacity = 1);
  void polyline(std::span<const Point> points, const Paint& stroke, const LineStyle& style = {});
  void line(Point from, Point to, const Paint& stroke, const LineStyle& style = {});
  void text(Point at, std::string_view text, const TextStyle& style = {});

  std::string finish();

 private:
  void close_shape(std::string_view name, std::string_view tooltip);

  std::string out_;
};

}  // namespace bitfed
