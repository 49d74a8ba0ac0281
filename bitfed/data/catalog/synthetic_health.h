#pragma once

#include <cstdint>

#include "bitfed/base/config.h"
#include "bitfed/data/dataset.h"

namespace bitfed {

// Generated readings of people with a wearable each: for tests of scale without files.
struct SyntheticHealthOptions {
  uint32_t devices = 20;      // one person each
  uint32_t points = 100'000;  // training points of each; 0.3 times as many follow for testing
  double skew = 0.5;  // Dirichlet concentration of a person's activities: the smaller, the fewer activities
};

// The keys `devices`, `points` and `skew` of a recipe's [data].
SyntheticHealthOptions read_synthetic_health(const Config& data);

// 14 attributes of 6 activities, by device and then by time, a point every two seconds.
//
// A person's activities have shares drawn from Dirichlet(skew). They come in bouts of one to five minutes;
// the activity of a bout is drawn from the shares, independent of earlier bouts. At time t of activity c,
// attribute j of person p reads
//
//     centre_j + scale_j (gain_pj (mean_cj + sum_k loading_cjk z_tk) + offset_pj + 0.7 e_tj),
//
// where z is slow (autoregressive with coefficient 0.95), e is the sensor's noise, and all have variance one
// and are nearly normal. Means, loadings, centres and scales are the same for every seed: another seed gives
// other people with the same activities. Because of gains and offsets a personal model can beat the global
// one. The first points of a person do not depend on how many follow.
DataSplit make_synthetic_health(const SyntheticHealthOptions& options, uint64_t seed);

}  // namespace bitfed
