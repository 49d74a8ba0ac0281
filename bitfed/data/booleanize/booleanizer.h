#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bitfed/base/config.h"
#include "bitfed/data/booleanize/bit_images.h"
#include "bitfed/data/dataset.h"
#include "bitfed/data/samples.h"

namespace bitfed {

// How samples become bits. A plain value that is written into model files, so that a model carries with
// it all that is needed to predict from raw data.
struct BooleanizerSpec {
  // "threshold"           1 where pixel > level
  // "adaptive-gaussian"   1 where pixel - round(local Gaussian mean) > -offset; bit-exact with OpenCV's
  //                       adaptiveThreshold(255, GAUSSIAN_C, BINARY, window, offset)
  // "colour-thermometer"  `levels` planes a channel: plane z is 1 where pixel >= (z + 1) * 255 / (levels + 1)
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

inline constexpr int kMostLevel = 255;
inline constexpr int kMostWindow = 255;
inline constexpr int kMostOffset = 255;
inline constexpr int kMostLevels = 64;  // the planes of one channel fit a word
inline constexpr int kMostBins = 256;

std::vector<std::string> booleanizer_kinds();

// Reads a booleanize = { kind = "…", … } table of a recipe.
BooleanizerSpec read_booleanizer(const Config& config, const std::string& default_kind);

// Planes of the bits that `spec` makes of samples like those of `dataset`; an input_error where the
// two do not go together (a table and a pixel threshold, an image and quantiles, unfitted cuts).
size_t plane_count(const BooleanizerSpec& spec, const Dataset& dataset);

// The planes of a pixel, or of a table's row, as thermometers: runs in which each bit implies the one before
// it. Their sizes, in the planes' order; they add up to `planes`.
std::vector<size_t> thermometer_sizes(const BooleanizerSpec& spec, size_t planes);

// Of "adaptive-gaussian": half of OpenCV's Gaussian kernel for `window`, the middle first.
std::vector<double> gaussian_weights(int window);

// A spec made ready for samples of one shape, with the memory it works in: one per thread, used again and
// again.
class Booleanizer {
 public:
  virtual ~Booleanizer() = default;

  // Makes `images`, of the samples' height, width and planes and with room for as many, theirs.
  void fill(const Samples& samples, BitImages* images);

 private:
  virtual void fill_bits(const Samples& samples, BitImages* images) = 0;
};

// Of a spec and samples that go together, see plane_count.
std::unique_ptr<Booleanizer> make_booleanizer(const BooleanizerSpec& spec, const SampleShape& shape);

BitImages booleanize(const BooleanizerSpec& spec, const Dataset& dataset);

}  // namespace bitfed
