#pragma once

#include <vector>

#include "bitfed/base/config.h"
#include "bitfed/data/booleanize/booleanizer.h"
#include "bitfed/data/dataset.h"
#include "bitfed/tsetlin/machine/machine.h"
#include "bitfed/tsetlin/machine/patches.h"

namespace bitfed {

// One machine of a recipe's model: how it sees the samples and how it learns. A composite has several.
struct SpecialistSpec {
  BooleanizerSpec booleanizer;  // quantile cuts are fitted later
  std::vector<int64_t> patch;   // height and width; empty: the whole image
  MachineOptions options;

  // The shape for samples like those of `dataset`; an input_error where the patch does not fit.
  PatchShape shape(const Dataset& dataset) const;
};

// Reads [model] (tm, ctm, ctm-composite) and, for the single machines, data.booleanize.
std::vector<SpecialistSpec> read_specialists(const Config& recipe, const Dataset& prototype);

}  // namespace bitfed
