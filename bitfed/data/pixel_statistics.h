#pragma once

#include <vector>

#include "bitfed/base/config.h"
#include "bitfed/data/dataset.h"

namespace bitfed {

// Per channel, of pixels scaled to 0..1.
struct PixelStatistics {
  std::vector<double> mean;
  std::vector<double> standard_deviation;  // of the population
};

// Over all pixels of all images; there must be at least one.
PixelStatistics measure_pixels(const Dataset& images);

// Replaces the statistics of `images` by those of a recipe's [data] table, if it has any: pixel_mean and
// pixel_std, one value per channel.
void read_pixel_statistics(const Config& data, Dataset* images);

// Both parts get the recipe's statistics, or those of the training images. A table has none.
void add_pixel_statistics(const Config& data, DataSplit* split);

}  // namespace bitfed
