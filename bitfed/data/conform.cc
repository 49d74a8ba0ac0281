#include "bitfed/data/conform.h"

#include <algorithm>

#include "bitfed/base/error.h"
#include "bitfed/base/names.h"

namespace bitfed {

Dataset conform(Dataset samples, const Dataset& prototype) {
  if (samples.columns != prototype.columns) {
    throw input_error("{}: found columns {}, expected {}", samples.name, joined(samples.columns),
                      joined(prototype.columns));
  }
  if (samples.height != prototype.height || samples.width != prototype.width ||
      samples.channels != prototype.channels) {
    throw input_error("{}: found images of {} x {} x {}, expected {} x {} x {}", samples.name, samples.height,
                      samples.width, samples.channels, prototype.height, prototype.width, prototype.channels);
  }
  std::vector<uint16_t> label_of(samples.class_count());
  for (size_t i = 0; i < label_of.size(); ++i) {
    const std::string& name = samples.class_names[i];
    const auto found = std::find(prototype.class_names.begin(), prototype.class_names.end(), name);
    if (found == prototype.class_names.end()) {
      throw input_error("{}: class '{}' is not a class of the federation{}", samples.name, name,
                        suggestion(name, prototype.class_names));
    }
    label_of[i] = static_cast<uint16_t>(found - prototype.class_names.begin());
  }
  for (uint16_t& label : samples.labels) label = label_of[label];
  samples.class_names = prototype.class_names;
  samples.pixel_mean = prototype.pixel_mean;
  samples.pixel_std = prototype.pixel_std;
  return samples;
}

}  // namespace bitfed
