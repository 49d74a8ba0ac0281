#include "bitfed/data/booleanize/booleanizer.h"

#include <array>
#include <cassert>
#include <cmath>

#include "bitfed/base/error.h"
#include "bitfed/base/names.h"
#include "bitfed/data/booleanize/booleanizers.h"

namespace bitfed {
namespace {

void expect_range(const char* key, int64_t found, int64_t min, int64_t max) {
  if (found < min || found > max) {
    throw input_error("booleanize.{} = {}: expected {} to {}", key, found, min, max);
  }
}

size_t channel_planes(const BooleanizerSpec&, const Dataset& dataset) {
  return dataset.channels;
}

size_t threshold_planes(const BooleanizerSpec& spec, const Dataset& dataset) {
  expect_range("level", spec.level, 0, kMaxLevel);
  return channel_planes(spec, dataset);
}

size_t adaptive_planes(const BooleanizerSpec& spec, const Dataset& dataset) {
  expect_range("window", spec.window, 3, kMaxWindow);
  expect_range("offset", spec.offset, -kMaxOffset, kMaxOffset);
  if (spec.window % 2 == 0) throw input_error("booleanize.window = {}: expected an odd number", spec.window);
  return channel_planes(spec, dataset);
}

size_t thermometer_planes(const BooleanizerSpec& spec, const Dataset& dataset) {
  expect_range("levels", spec.levels, 1, kMaxLevels);
  return dataset.channels * static_cast<size_t>(spec.levels);
}

// Cuts may come from a file: they must be ascending, which also rules out NaN.
void check_cuts(const std::vector<float>& cuts, const std::string& column) {
  for (size_t i = 0; i < cuts.size(); ++i) {
    if (std::isnan(cuts[i]) || (i > 0 && !(cuts[i - 1] < cuts[i]))) {
      throw input_error("booleanize.cuts of column '{}': cut {} is {}, expected ascending values", column, i,
                        cuts[i]);
    }
  }
}

size_t quantile_planes(const BooleanizerSpec& spec, const Dataset& dataset) {
  if (spec.cuts.empty()) throw input_error("booleanize.cuts: none, expected cuts fitted to {}", dataset.name);
  if (spec.cuts.size() != dataset.columns.size()) {
    throw input_error("booleanize.cuts: found cuts for {} columns, {} has {}", spec.cuts.size(), dataset.name,
                      dataset.columns.size());
  }
  size_t planes = 0;
  for (size_t column = 0; column < spec.cuts.size(); ++column) {
    check_cuts(spec.cuts[column], dataset.columns[column]);
    planes += spec.cuts[column].size();
  }
  if (planes == 0) {
    throw input_error("booleanize.cuts: none for any column of {}, expected one that takes two values",
                      dataset.name);
  }
  return planes;
}

std::vector<size_t> single_bits(const BooleanizerSpec&, size_t planes) {
  return std::vector<size_t>(planes, 1);
}

std::vector<size_t> colour_levels(const BooleanizerSpec& spec, size_t planes) {
  const auto levels = static_cast<size_t>(spec.levels);
  return std::vector<size_t>(planes / levels, levels);
}

// Columns without cuts have no bits.
std::vector<size_t> column_cuts(const BooleanizerSpec& spec, size_t /*planes*/) {
  std::vector<size_t> sizes;
  for (const std::vector<float>& cuts : spec.cuts) {
    if (!cuts.empty()) sizes.push_back(cuts.size());
  }
  return sizes;
}

struct Kind {
  const char* name;
  bool for_tables;
  size_t (*planes)(const BooleanizerSpec&, const Dataset&);  // checks the spec first
  std::vector<size_t> (*thermometers)(const BooleanizerSpec&, size_t planes);
  std::unique_ptr<Booleanizer> (*make)(const BooleanizerSpec&, const SampleShape&);
};

constexpr std::array<Kind, 4> kKinds = {{
    {"threshold", false, threshold_planes, single_bits, make_threshold},
    {"adaptive-gaussian", false, adaptive_planes, single_bits, make_adaptive_gaussian},
    {"colour-thermometer", false, thermometer_planes, colour_levels, make_colour_thermometer},
    {"quantile", true, quantile_planes, column_cuts, make_quantile},
}};

const Kind& find_kind(const std::string& name) {
  for (const Kind& kind : kKinds) {
    if (name == kind.name) return kind;
  }
  throw input_error("booleanize.kind = \"{}\" is unknown{}", name, suggestion(name, booleanizer_kinds()));
}

}  // namespace

std::vector<std::string> booleanizer_kinds() {
  std::vector<std::string> names;
  for (const Kind& kind : kKinds) names.emplace_back(kind.name);
  return names;
}

size_t plane_count(const BooleanizerSpec& spec, const Dataset& dataset) {
  const Kind& kind = find_kind(spec.kind);
  if (kind.for_tables != dataset.is_table()) {
    throw input_error("booleanize.kind = \"{}\": it is for {}, {} is {}", spec.kind,
                      kind.for_tables ? "tables" : "images", dataset.name,
                      dataset.is_table() ? "a table" : "a set of images");
  }
  return kind.planes(spec, dataset);
}

std::vector<size_t> thermometer_sizes(const BooleanizerSpec& spec, size_t planes) {
  return find_kind(spec.kind).thermometers(spec, planes);
}

std::unique_ptr<Booleanizer> make_booleanizer(const BooleanizerSpec& spec, const SampleShape& shape) {
  return find_kind(spec.kind).make(spec, shape);
}

void Booleanizer::fill(const Samples& samples, BitImages* images) {
  assert(images->bits.rows() >= samples.count * images->height);
  images->count = samples.count;
  fill_bits(samples, images);
}

BitImages booleanize(const BooleanizerSpec& spec, const Dataset& dataset) {
  const size_t planes = plane_count(spec, dataset);
  const size_t height = dataset.is_table() ? 1 : dataset.height;
  const size_t width = dataset.is_table() ? 1 : dataset.width;
  BitImages result(dataset.size(), height, width, planes);
  make_booleanizer(spec, shape_of(dataset))->fill(samples_of(dataset), &result);
  return result;
}

}  // namespace bitfed
