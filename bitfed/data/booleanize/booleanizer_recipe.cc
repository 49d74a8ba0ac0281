#include <array>

#include "bitfed/base/error.h"
#include "bitfed/data/booleanize/booleanizer.h"

// In a file of its own: a deployed model has booleanizers but reads no recipes.
namespace bitfed {
namespace {

int read_integer(const Config& config, const char* key, int fallback, int min, int max) {
  return static_cast<int>(config.integer(key, fallback, min, max));
}

void read_threshold(const Config& config, BooleanizerSpec& spec) {
  spec.level = read_integer(config, "level", spec.level, 0, kMaxLevel);
}

void read_adaptive(const Config& config, BooleanizerSpec& spec) {
  spec.window = read_integer(config, "window", spec.window, 3, kMaxWindow);
  spec.offset = read_integer(config, "offset", spec.offset, -kMaxOffset, kMaxOffset);
  if (spec.window % 2 == 0) {
    throw input_error("{}: found {}, expected an odd number", config.where("window"), spec.window);
  }
}

void read_thermometer(const Config& config, BooleanizerSpec& spec) {
  spec.levels = read_integer(config, "levels", spec.levels, 1, kMaxLevels);
}

void read_quantile(const Config& config, BooleanizerSpec& spec) {
  spec.bins = read_integer(config, "bins", spec.bins, 2, kMaxBins);
}

struct Reader {
  const char* kind;
  void (*read)(const Config&, BooleanizerSpec&);
};

constexpr std::array<Reader, 4> kReaders = {{
    {"threshold", read_threshold},
    {"adaptive-gaussian", read_adaptive},
    {"colour-thermometer", read_thermometer},
    {"quantile", read_quantile},
}};

}  // namespace

BooleanizerSpec read_booleanizer(const Config& config, const std::string& default_kind) {
  BooleanizerSpec spec;
  spec.kind = config.choice("kind", default_kind, booleanizer_kinds());
  for (const Reader& reader : kReaders) {
    if (spec.kind == reader.kind) reader.read(config, spec);
  }
  return spec;
}

}  // namespace bitfed
