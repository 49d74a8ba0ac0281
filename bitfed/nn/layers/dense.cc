#include "bitfed/nn/layers/dense.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "bitfed/nn/kernels/panels.h"

namespace bitfed {

Dense::Dense(size_t batch, const ImageShape& input, size_t units, const std::string& name, Bias bias)
    : Layer(batch, padded_shape(1, 1, units, 0)),
      inputs_(input.image_floats()),
      units_(units),
      has_bias_(bias),
      weights_(name + ".weights", input.image_floats(), units, false,
               {input.channels, input.used_channels()}),
      bias_(name + ".bias", 1, units),
      by_unit_(padded(units) * padded(batch)),
      by_input_(kPanelColumns * padded(batch)),
      by_image_(kPanelColumns * padded(batch)) {
  assert(input.border == 0);
  weights_.can_step = true;
  for (size_t image = 0; image < batch; ++image) rows_.push_back(static_cast<uint32_t>(image * inputs_));
}

std::vector<Parameter*> Dense::own_parameters() {
  if (has_bias_ == Bias::kNone) return {&weights_};
  return {&weights_, &bias_};
}

void Dense::on_initialise(RandomStream random) {
  const double limit = 1 / std::sqrt(static_cast<double>(weights_.used_rows()));
  std::vector<float> values(weights_.count());
  for (float& value : values) value = static_cast<float>(limit * (2 * random.uniform() - 1));
  weights_.assign(values);
  if (has_bias_ == Bias::kNone) return;
  for (size_t unit = 0; unit < units_; ++unit)
    bias_.values.row(0)[unit] = static_cast<float>(limit * (2 * random.uniform() - 1));
}

void Dense::forward(const Images& input, size_t images, Pass /*pass*/) {
  const size_t stride = padded(units_);
  // Some weights at a time, which stay in the second-level cache for all images.
  constexpr size_t kWeights = size_t{64} * 1024;
  const size_t depth = std::max<size_t>(1, kWeights / stride);
  for (size_t first = 0; first < inputs_; first += depth) {
    neural_kernels().multiply_gathered({input.data() + first, rows_.data(), nullptr, first > 0, 1, 0,
                                        weights_.values.row(first), output_.data(), stride, images, stride,
                                        std::min(depth, inputs_ - first)});
  }
  if (has_bias_ == Bias::kNone) return;
  for (size_t image = 0; image < images; ++image) {
    for (size_t unit = 0; unit < units_; ++unit) output_.row(image, 0)[unit] += bias_.values.row(0)[unit];
  }
}

void Dense::bias_gradient(size_t images) {
  bias_.gradient.values.clear();
  for (size_t image = 0; image < images; ++image) {
    for (size_t unit = 0; unit < units_; ++unit)
      bias_.gradient.row(0)[unit] += output_gradient().row(image, 0)[unit];
  }
}

// The product reads many rows at once, which a processor does not foresee.
void Dense::prefetch_weights(size_t first, size_t rows) const {
  constexpr size_t kLineFloats = 64 / sizeof(float);
  const float* const begin = weights_.values.row(std::min(first, inputs_));
  const float* const end = weights_.values.row(std::min(first + rows, inputs_));
  for (const float* line = begin; line < end; line += kLineFloats) __builtin_prefetch(line);
}

// Some weights at a time, which stay in a near cache between their two products.
void Dense::backward(const Images& input, size_t images, Images* input_gradient) {
  const NeuralKernels& kernels = neural_kernels();
  const size_t stride = padded(units_);
  const size_t columns = padded(images);
  if (has_bias_ == Bias::kLearned) bias_gradient(images);
  if (input_gradient != nullptr) {
    assert(inputs_ % kLanes == 0);
    kernels.transpose(output_gradient().data(), images, stride, by_unit_.data(), columns);
  }
  Matrix& to = weights_.step_rate != 0 ? weights_.values : weights_.gradient;
  for_each_panel(inputs_, [&](const Panel& panel) {
    // Transposed, since so the weights are read in their order: a column per image.
    if (input_gradient != nullptr) {
      prefetch_weights(panel.first + panel.width, panel.width);
      kernels.multiply({weights_.values.row(panel.first), stride, 1, by_unit_.data(), columns,
                        by_input_.data(), columns, panel.width, columns, units_});
      kernels.transpose(by_input_.data(), panel.width, columns, by_image_.data(), panel.width);
    }
    kernels.multiply({input.data() + panel.first, 1, inputs_, output_gradient().data(), stride,
                      to.row(panel.first), stride, panel.width, stride, images, weights_.step_rate});
    for (size_t image = 0; input_gradient != nullptr && image < images; ++image)
      std::copy_n(by_image_.data() + image * panel.width, panel.width,
                  input_gradient->data() + image * inputs_ + panel.first);
  });
}

}  // namespace bitfed
