#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bitfed/base/config.h"
#include "bitfed/data/booleanize/bit_images.h"
#include "bitfed/data/dataset.h"
#include "bitfed/data/samples.h"

namespace bitfed {

// How samples become bits. A plain value that is written into model files, so that a model can predict from
// raw data.
struct BooleanizerSpec {
  // "threshold"           1 where pixel > level
  // "adaptive-gaussian"   1 where pixel - round(local Gaussian mean) > -offset; bit-exact with OpenCV's
  //                       adaptiveThreshold(255, GAUSSIAN_C, BINARY, window, offset)
  // "colour-thermometer"  `levels` planes per channel: plane z is 1 where
  //                       pixel >= (z + 1) * 255 / (levels + 1)
  // "quantile"            for tables: a plane for each cut of each column, 1 where value > cut
  std::string kind = "threshold";
  int level = 75;
  int window = 11;
  int offset = 2;
  int levels = 8;
  int bins = 10;
  std::vector<std::vector<float>> cuts;  // quantile: the cuts of each column, ascending; fitted

  bool operator==(const BooleanizerSpec&) const = default;
};

inline constexpr int kMaxLevel = 255;
inline constexpr int kMaxWindow = 255;
inline constexpr int kMaxOffset = 255;
inline constexpr int kMaxLevels = 64;  // the planes of one channel fit into a 64-bit word
inline constexpr int kMaxBins = 256;

std::vector<std::string> booleanizer_kinds();

// Reads a booleanize = { kind = "…", … } table of a recipe.
BooleanizerSpec read_booleanizer(const Config& config, const std::string& default_kind);

// The number of planes that `spec` makes of samples like those of `dataset`; an input_error where the two are
// incompatible (a table and a pixel threshold, an image and quantiles, unfitted cuts).
size_t plane_count(const BooleanizerSpec& spec, const Dataset& dataset);

// The planes of a pixel, or of a table's row, form thermometer codes: runs in which each bit implies the one
// before it. Returns the lengths of the runs in the order of the planes; their sum is `planes`.
std::vector<size_t> thermometer_sizes(const BooleanizerSpec& spec, size_t planes);

// For "adaptive-gaussian": half of OpenCV's Gaussian kernel for `window`, the middle first.
std::vector<double> gaussian_weights(int window);

// A spec prepared for samples of one shape, with its working memory. Reusable, but not thread-safe: one per
// thread.
class Booleanizer {
 public:
  virtual ~Booleanizer() = default;

  // Writes the bits of `samples` to `images`, which must have their height, width, planes and room for as
  // many.
  void fill(const Samples& samples, BitImages* images);

 private:
  virtual void fill_bits(const Samples& samples, BitImages* images) = 0;
};

// Spec and shape must be compatible, see plane_count.
std::unique_ptr<Booleanizer> make_booleanizer(const BooleanizerSpec& spec, const SampleShape& shape);

BitImages booleanize(const BooleanizerSpec& spec, const Dataset& dataset);

}  // namespace bitfed
