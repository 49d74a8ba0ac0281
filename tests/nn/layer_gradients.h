#pragma once

#include <gtest/gtest.h>

#include <cmath>

#include "bitfed/nn/layers/layer.h"

namespace bitfed {

// Calls body(value) for every used value of the images, row by row.
template <typename Body>
void for_each_value(Images* images, size_t count, Body body) {
  const ImageShape& shape = images->shape();
  for (size_t i = 0; i < count * shape.height * shape.width; ++i) {
    const size_t y = i / shape.width % shape.height;
    float* pixel = images->row(i / shape.pixels(), y) + i % shape.width * shape.channels;
    for (size_t c = 0; c < shape.used_channels(); ++c) body(&pixel[c]);
  }
}

inline void fill_normal(uint64_t seed, Images* images) {
  RandomStream random({seed, "normal"});
  for_each_value(images, images->batch(),
                 [&](float* value) { *value = static_cast<float>(random.normal()); });
}

// Odd sixteenths within ±2: a step of central differences crosses none of 0, 1 and -1.
inline void fill_sixteenths(uint64_t seed, Images* images) {
  RandomStream random({seed, "sixteenths"});
  for_each_value(images, images->batch(),
                 [&](float* value) { *value = static_cast<float>(random.below(32)) / 8 - 2 + 1.0f / 16; });
}

inline bool padding_is_zero(const Images& images, size_t count) {
  const ImageShape& shape = images.shape();
  for (size_t i = 0; i < count * shape.image_floats(); ++i) {
    if (i % shape.channels >= shape.used_channels() && images.data()[i] != 0) return false;
  }
  return true;
}

// The gradients of sum(g * output) of a layer that is linear piece by piece, by central differences. Every
// training pass draws the same numbers.
class LayerDifferences {
 public:
  LayerDifferences(Layer* layer, Images* input, size_t images)
      : layer_(layer),
        input_(input),
        images_(images),
        g_(input->batch(), layer->output().shape().without_border()) {
    fill_normal(7, &g_);
  }

  // Also checks that padding channels of the output are 0.
  double objective() {
    layer_->seed(RandomStream({9, "draws"}));
    layer_->forward(*input_, images_, Pass::kTraining);
    EXPECT_TRUE(padding_is_zero(layer_->output(), images_));
    const ImageShape& shape = g_.shape();
    double sum = 0;
    for (size_t row = 0; row < images_ * shape.height; ++row) {
      const float* out = layer_->output().row(row / shape.height, row % shape.height);
      for (size_t i = 0; i < shape.row_floats(); ++i)
        sum += static_cast<double>(g_.data()[row * shape.row_floats() + i]) * out[i];
    }
    return sum;
  }

  // Between two pieces, where the slopes of both sides differ, there is nothing to compare.
  void expect(float found, float* value, const std::string& name) {
    constexpr float kStep = 1.0f / 256;
    const float kept = *value;
    const double here = objective();
    *value = kept + kStep;
    const double above = (objective() - here) / kStep;
    *value = kept - kStep;
    const double below = (here - objective()) / kStep;
    *value = kept;
    const double tolerance = 3e-3 * std::max(1.0, std::fabs(above));
    ++tried_;
    if (std::fabs(above - below) > tolerance) return;
    ++compared_;
    EXPECT_NEAR(found, above, tolerance) << name;
  }

  const Images& output_gradient() const { return g_; }
  bool compared_most() const { return 3 * compared_ >= 2 * tried_; }

 private:
  Layer* layer_;
  Images* input_;
  size_t images_;
  Images g_;
  size_t tried_ = 0;
  size_t compared_ = 0;
};

// Also checks that padding channels of the output and of the input's gradient are 0.
inline void expect_gradients(Layer* layer, Images* input, size_t images) {
  LayerDifferences differences(layer, input, images);
  differences.objective();
  const Images& g = differences.output_gradient();
  std::copy_n(g.data(), images * g.shape().image_floats(), layer->output_gradient().data());
  Images gradient(input->batch(), input->shape().without_border());
  std::fill_n(gradient.data(), input->batch() * gradient.shape().image_floats(), 1e9f);  // to be overwritten
  layer->backward(*input, images, &gradient);
  EXPECT_TRUE(padding_is_zero(gradient, images));
  std::vector<float> found;
  for_each_value(&gradient, images, [&](const float* value) { found.push_back(*value); });
  size_t at = 0;
  for_each_value(input, images, [&](float* value) { differences.expect(found[at++], value, "input"); });
  for (Parameter* parameter : layer->parameters()) {
    for (size_t row = 0; row < parameter->values.rows; ++row) {
      if (row % parameter->groups.size >= parameter->groups.used) continue;
      const size_t columns = parameter->values.columns;
      const size_t step = parameter->values.rows * columns > 1000 ? 41 : 1;  // of many, some
      for (size_t column = row % step; column < columns; column += step) {
        differences.expect(parameter->gradient.row(row)[column], &parameter->values.row(row)[column],
                           parameter->name);
      }
    }
  }
  EXPECT_TRUE(differences.compared_most());
}

}  // namespace bitfed
