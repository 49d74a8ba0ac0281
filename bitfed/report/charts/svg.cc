#include "bitfed/report/charts/svg.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "bitfed/report/markup.h"

namespace bitfed {
namespace {

std::string fill_of(const Paint& paint, double opacity = 1) {
  std::string attributes = fmt::format(R"( class="f-{}" fill="{}")", paint.name, paint.light);
  if (opacity != 1) attributes += fmt::format(R"( fill-opacity="{}")", svg_number(opacity));
  return attributes;
}

std::string stroke_of(const Paint& paint, const LineStyle& style) {
  std::string attributes = fmt::format(R"( class="s-{}" fill="none" stroke="{}" stroke-width="{}")",
                                       paint.name, paint.light, svg_number(style.width));
  if (!style.dash.empty()) attributes += fmt::format(R"( stroke-dasharray="{}")", style.dash);
  return attributes;
}

std::string box_of(const Box& box) {
  return fmt::format(R"(x="{}" y="{}" width="{}" height="{}")", svg_number(box.x), svg_number(box.y),
                     svg_number(box.width), svg_number(box.height));
}

std::string points_of(std::span<const Point> points) {
  std::string text;
  for (const Point& point : points) {
    fmt::format_to(std::back_inserter(text), "{}{},{}", text.empty() ? "" : " ", svg_number(point.x),
                   svg_number(point.y));
  }
  return text;
}

std::string_view anchor_name(Anchor anchor) {
  return anchor == Anchor::kMiddle ? "middle" : "end";
}

}  // namespace

std::string svg_number(double value) {
  std::string text = fmt::format("{:.2f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

SvgWriter::SvgWriter(double width, double height, std::string_view title) {
  out_ = fmt::format(
      R"(<svg xmlns="http://www.w3.org/2000/svg" width="{0}" height="{1}" viewBox="0 0 {0} {1}" role="img" )"
      R"(font-family="system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif">)"
      "\n<title>{2}</title>\n",
      svg_number(width), svg_number(height), escape_markup(title));
  rectangle({0, 0, width, height}, kSurface);
}

void SvgWriter::close_shape(std::string_view name, std::string_view tooltip) {
  if (tooltip.empty()) {
    out_ += "/>\n";
  } else {
    out_ += fmt::format("><title>{}</title></{}>\n", escape_markup(tooltip), name);
  }
}

void SvgWriter::rectangle(const Box& box, const Paint& fill, const ShapeStyle& style) {
  out_ += fmt::format("<rect {}{}", box_of(box), fill_of(fill, style.opacity));
  if (style.radius > 0) out_ += fmt::format(R"( rx="{}")", svg_number(style.radius));
  close_shape("rect", style.tooltip);
}

void SvgWriter::outline(const Box& box, const Paint& stroke, const LineStyle& style) {
  out_ += fmt::format("<rect {}{}/>\n", box_of(box), stroke_of(stroke, style));
}

void SvgWriter::circle(Point centre, double radius, const Paint& fill, std::string_view tooltip) {
  out_ += fmt::format(R"(<circle cx="{}" cy="{}" r="{}"{})", svg_number(centre.x), svg_number(centre.y),
                      svg_number(radius), fill_of(fill));
  close_shape("circle", tooltip);
}

void SvgWriter::polygon(std::span<const Point> corners, const Paint& fill, double opacity) {
  out_ += fmt::format("<polygon points=\"{}\"{}/>\n", points_of(corners), fill_of(fill, opacity));
}

void SvgWriter::polyline(std::span<const Point> points, const Paint& stroke, const LineStyle& style) {
  out_ += fmt::format("<polyline points=\"{}\"{} stroke-linejoin=\"round\" stroke-linecap=\"round\"/>\n",
                      points_of(points), stroke_of(stroke, style));
}

void SvgWriter::line(Point from, Point to, const Paint& stroke, const LineStyle& style) {
  out_ += fmt::format("<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"{}/>\n", svg_number(from.x),
                      svg_number(from.y), svg_number(to.x), svg_number(to.y), stroke_of(stroke, style));
}

void SvgWriter::text(Point at, std::string_view text, const TextStyle& style) {
  out_ += fmt::format(R"(<text x="{}" y="{}" font-size="{}"{})", svg_number(at.x), svg_number(at.y),
                      svg_number(style.size), fill_of(style.paint));
  if (style.anchor != Anchor::kStart) out_ += fmt::format(R"( text-anchor="{}")", anchor_name(style.anchor));
  if (style.bold) out_ += R"( font-weight="600")";
  if (style.angle != 0) {
    out_ += fmt::format(R"-( transform="rotate({} {} {})")-", svg_number(style.angle), svg_number(at.x),
                        svg_number(at.y));
  }
  out_ += fmt::format(">{}</text>\n", escape_markup(text));
}

std::string SvgWriter::finish() {
  return std::move(out_) + "</svg>\n";
}

}  // namespace bitfed
