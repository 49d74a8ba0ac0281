#include "bitfed/data/pixel_statistics.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "bitfed/base/error.h"

namespace bitfed {
namespace {

constexpr double kMinStandardDeviation = 1e-6;

std::vector<float> read_channels(const Config& data, const char* key, double min, double max,
                                 size_t channels) {
  if (!data.has(key)) {
    throw input_error("{}: missing, expected pixel_mean and pixel_std together", data.where(key));
  }
  const std::vector<double> values = data.numbers(key, {}, min, max);
  if (values.size() != channels) {
    throw input_error("{}: found {} values, expected one per channel, {}", data.where(key), values.size(),
                      channels);
  }
  return {values.begin(), values.end()};
}

}  // namespace

PixelStatistics measure_pixels(const Dataset& images) {
  PixelStatistics statistics;
  for (size_t channel = 0; channel < images.channels; ++channel) {
    std::array<uint64_t, 256> counts = {};
    for (size_t i = channel; i < images.pixels.size(); i += images.channels) ++counts[images.pixels[i]];
    double count = 0, sum = 0, squares = 0;
    for (size_t value = 0; value < counts.size(); ++value) {
      const auto pixels = static_cast<double>(counts[value]);
      const double scaled = static_cast<double>(value) / 255;
      count += pixels;
      sum += pixels * scaled;
      squares += pixels * scaled * scaled;
    }
    const double mean = sum / count;
    statistics.mean.push_back(mean);
    statistics.standard_deviation.push_back(std::sqrt(std::max(0.0, squares / count - mean * mean)));
  }
  return statistics;
}

void read_pixel_statistics(const Config& data, Dataset* images) {
  if (!data.has("pixel_mean") && !data.has("pixel_std")) return;
  images->pixel_mean = read_channels(data, "pixel_mean", 0, 1, images->channels);
  images->pixel_std = read_channels(data, "pixel_std", kMinStandardDeviation, 1000, images->channels);
}

void add_pixel_statistics(const Config& data, DataSplit* split) {
  if (split->train.is_table() || split->train.size() == 0) return;
  const PixelStatistics measured = measure_pixels(split->train);
  for (Dataset* part : {&split->train, &split->test}) {
    part->pixel_mean.assign(measured.mean.begin(), measured.mean.end());
    part->pixel_std.assign(measured.standard_deviation.begin(), measured.standard_deviation.end());
    for (float& deviation : part->pixel_std)
      deviation = std::max(deviation, static_cast<float>(kMinStandardDeviation));
    read_pixel_statistics(data, part);
  }
}

}  // namespace bitfed
