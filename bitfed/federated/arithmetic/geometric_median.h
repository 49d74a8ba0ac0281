#pragma once

#include <span>
#include <vector>

namespace bitfed {

using TensorValues = std::vector<std::vector<float>>;     // the parameters of a model, by tensor
using TensorViews = std::vector<std::span<const float>>;  // the same where they lie

// The geometric median of models: the point with the smallest sum of distances to them (Pillutla, Kakade and
// Harchaoui, "Robust aggregation for federated learning", 2022). A minority of models pulls it only as far as
// a bounded force does, however far away they are. Unlike the median of each parameter it keeps to
// combinations of whole models.
//
// `start` is a first guess of the same shape, for example the median of each parameter. Tensors that are not
// `learned` have no part in the distances and are averaged with the weights that the learned ones give. The
// sums have a fixed order, in double precision: the same models in the same order give the same bytes.
TensorValues geometric_median(const std::vector<const TensorValues*>& models,
                              const std::vector<bool>& learned, const TensorValues& start);

}  // namespace bitfed
