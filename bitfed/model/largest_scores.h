#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace bitfed {

// The class with the largest score of each sample; the lowest class on ties.
void largest_scores(const float* scores, size_t samples, size_t classes, uint16_t* labels);
std::vector<uint16_t> largest_scores(const std::vector<float>& scores, size_t classes);

}  // namespace bitfed
