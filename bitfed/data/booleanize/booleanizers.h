#pragma once

#include <memory>

#include "bitfed/data/booleanize/booleanizer.h"

namespace bitfed {

// The kinds of booleanizers. Spec and shape must be compatible, see plane_count.
std::unique_ptr<Booleanizer> make_threshold(const BooleanizerSpec& spec, const SampleShape& shape);
std::unique_ptr<Booleanizer> make_adaptive_gaussian(const BooleanizerSpec& spec, const SampleShape& shape);
std::unique_ptr<Booleanizer> make_colour_thermometer(const BooleanizerSpec& spec, const SampleShape& shape);
std::unique_ptr<Booleanizer> make_quantile(const BooleanizerSpec& spec, const SampleShape& shape);

}  // namespace bitfed
