#include "bitfed/report/charts/clause_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "bitfed/report/charts/svg.h"
#include "bitfed/report/markup.h"

namespace bitfed {
namespace {

constexpr double kPatchSide = 84;
constexpr double kFrameSide = 52;
constexpr double kSpace = 12;

// What a clause demands of the planes of one pixel.
struct PixelDemand {
  size_t ones = 0;
  size_t zeros = 0;
  bool is_contradiction = false;
};

PixelDemand demand_of(const ClauseView& clause, size_t pixel) {
  PixelDemand demand;
  const size_t planes = clause.member->shape.planes;
  for (size_t bit = pixel * planes; bit < (pixel + 1) * planes; ++bit) {
    const bool one = clause.must_be_one(bit);
    const bool zero = clause.must_be_zero(bit);
    demand.ones += one;
    demand.zeros += zero;
    demand.is_contradiction |= one && zero;
  }
  return demand;
}

// One bound plane of many is faint, yet never invisible.
double strength(size_t bound, size_t planes) {
  return planes == 1 ? 1 : 0.3 + 0.7 * static_cast<double>(bound) / static_cast<double>(planes);
}

void draw_hatched(SvgWriter& svg, const Box& box) {
  svg.rectangle(box, kMuted, {.opacity = 0.25});
  for (const double part : {1.0 / 3, 2.0 / 3, 1.0}) {
    svg.line({box.x, box.y + box.height * part}, {box.x + box.width * part, box.y}, kContrast);
    svg.line({box.x + box.width * part, box.y + box.height}, {box.x + box.width, box.y + box.height * part},
             kContrast);
  }
}

void draw_split(SvgWriter& svg, const Box& box, double dark, double light) {
  const Point top_right{box.x + box.width, box.y};
  const Point bottom_left{box.x, box.y + box.height};
  svg.polygon(std::array{Point{box.x, box.y}, top_right, bottom_left}, kInk, dark);
  svg.polygon(std::array{top_right, Point{top_right.x, bottom_left.y}, bottom_left}, kContrast, light);
}

void draw_pixel(SvgWriter& svg, const Box& box, const PixelDemand& demand, size_t planes) {
  if (demand.is_contradiction) {
    draw_hatched(svg, box);
  } else if (demand.ones > 0 && demand.zeros > 0) {
    draw_split(svg, box, strength(demand.ones, planes), strength(demand.zeros, planes));
  } else if (demand.ones > 0) {
    svg.rectangle(box, kInk, {.opacity = strength(demand.ones, planes)});
  } else if (demand.zeros > 0) {
    svg.rectangle(box, kContrast, {.opacity = strength(demand.zeros, planes)});
  }
}

// One outline and hairlines between the pixels, fewer elements than a cell each.
void draw_grid(SvgWriter& svg, const Box& box, const PatchShape& shape, double cell) {
  for (size_t i = 1; cell >= 6 && i < shape.patch_width; ++i) {
    const double x = box.x + cell * static_cast<double>(i);
    svg.line({x, box.y}, {x, box.y + box.height}, kGrid, {.width = 0.75});
  }
  for (size_t i = 1; cell >= 6 && i < shape.patch_height; ++i) {
    const double y = box.y + cell * static_cast<double>(i);
    svg.line({box.x, y}, {box.x + box.width, y}, kGrid, {.width = 0.75});
  }
  svg.outline(box, kMuted, {.width = 1});
}

void draw_patch(SvgWriter& svg, const ClauseView& clause, const Box& box, double cell) {
  const PatchShape& shape = clause.member->shape;
  for (size_t pixel = 0; pixel < shape.patch_height * shape.patch_width; ++pixel) {
    const Box place{box.x + cell * static_cast<double>(pixel % shape.patch_width),
                    box.y + cell * static_cast<double>(pixel / shape.patch_width), cell, cell};
    draw_pixel(svg, place, demand_of(clause, pixel), shape.planes);
  }
  draw_grid(svg, box, shape, cell);
}

// The region from the first allowed position to the last pixel of a patch at the last one.
void draw_frame(SvgWriter& svg, const ClauseView& clause, const Box& frame, double pixel) {
  const PatchShape& shape = clause.member->shape;
  if (!clause.y.empty() && !clause.x.empty()) {
    const Box region{frame.x + pixel * static_cast<double>(clause.x.first),
                     frame.y + pixel * static_cast<double>(clause.y.first),
                     pixel * static_cast<double>(clause.x.last - clause.x.first + shape.patch_width),
                     pixel * static_cast<double>(clause.y.last - clause.y.first + shape.patch_height)};
    svg.rectangle(region, kAccent, {.opacity = 0.22});
    svg.outline(region, kAccent, {.width = 1.25});
  } else {
    svg.text({frame.x + frame.width / 2, frame.y + frame.height / 2 + 4}, "nowhere",
             {.paint = kMuted, .size = 10, .anchor = Anchor::kMiddle});
  }
  svg.outline(frame, kMuted);
}

bool is_picture(const TsetlinMember& member) {
  return member.shape.patch_height * member.shape.patch_width > 1;
}

std::string caption(const ClauseView& clause, bool several_members) {
  std::string text = fmt::format("<b>{:+.3g}</b> {} literal{}", clause.vote(), clause.literals,
                                 clause.literals == 1 ? "" : "s");
  if (several_members) text += fmt::format(", machine {}", clause.member_index + 1);
  return text;
}

}  // namespace

std::string clause_picture(const ClauseView& clause) {
  const PatchShape& shape = clause.member->shape;
  const double cell = kPatchSide / static_cast<double>(std::max(shape.patch_height, shape.patch_width));
  const double pixel = kFrameSide / static_cast<double>(std::max(shape.height, shape.width));
  const Box patch{1, 1, cell * static_cast<double>(shape.patch_width),
                  cell * static_cast<double>(shape.patch_height)};
  const Box frame{patch.width + kSpace, 1, pixel * static_cast<double>(shape.width),
                  pixel * static_cast<double>(shape.height)};
  const bool has_frame = shape.patches() > 1;
  SvgWriter svg(has_frame ? frame.x + frame.width + 1 : patch.width + 2,
                std::max(patch.height, has_frame ? frame.height : 0) + 2, clause_text(clause));
  draw_patch(svg, clause, patch, cell);
  if (has_frame) draw_frame(svg, clause, frame, pixel);
  return svg.finish();
}

std::string clause_pictures(const std::vector<TsetlinMember>& members,
                            const std::vector<std::string>& class_names, size_t per_class,
                            const std::vector<std::string>& columns) {
  std::string html;
  for (size_t c = 0; c < class_count(members); ++c) {
    const std::vector<ClauseView> clauses = strongest_clauses(members, c, per_class);
    if (clauses.empty()) continue;
    const std::string name = c < class_names.size() ? class_names[c] : fmt::format("class {}", c);
    html += fmt::format("<div class=\"clauses\"><h4>{}</h4>\n", escape_markup(name));
    for (const ClauseView& clause : clauses) {
      if (is_picture(*clause.member)) {
        html += fmt::format("<figure>{}<figcaption>{}</figcaption></figure>\n", clause_picture(clause),
                            caption(clause, members.size() > 1));
      } else {
        html += fmt::format("<code>{}</code>\n", escape_markup(clause_text(clause, 24, columns)));
      }
    }
    html += "</div>\n";
  }
  return html;
}

}  // namespace bitfed
