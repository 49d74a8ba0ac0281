#include "bitfed/nn/layers/network.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

namespace bitfed {

void Network::initialise(const RandomStream& random) {
  layers_.initialise(random);
  parameters_ = layers_.parameters();
  loss_sums_.resize(batch());
  loss_margins_.resize(batch());
}

float Network::differentiate(std::span<const uint16_t> labels) {
  const size_t images = labels.size();
  assert(images > 0 && images <= batch());
  layers_.forward(input_, images, Pass::kTraining);
  const Images& output = layers_.output();
  const size_t columns = output.shape().channels;
  Images& gradient = layers_.output_gradient();
  std::copy_n(output.data(), images * columns, gradient.data());
  neural_kernels().softmax_loss(gradient.data(), images, columns, classes_, labels.data(), loss_sums_.data(),
                                loss_margins_.data());
  float loss = 0;
  for (size_t i = 0; i < images; ++i) loss += std::log(loss_sums_[i]) + loss_margins_[i];
  layers_.backward(input_, images, nullptr);
  return loss / static_cast<float>(images);
}

void Network::announce(const Descent& descent) {
  if (!descent.is_plain()) return;
  for (Parameter* parameter : parameters_) {
    if (parameter->can_step) parameter->step_rate = descent.rate;
  }
}

void Network::descend(const Descent& descent) {
  const NeuralKernels& kernels = neural_kernels();
  const bool is_plain = descent.is_plain();
  const auto allocate = [&](std::vector<Matrix>* of_parameters) {
    if (!of_parameters->empty()) return;
    for (const Parameter* parameter : parameters_)
      of_parameters->emplace_back(parameter->gradient.rows, parameter->gradient.columns);
  };
  if (!is_plain) allocate(&velocities_);
  if (descent.adam) {
    allocate(&second_moments_);
    adam_.begin_step(descent.rate);
  }
  for (size_t p = 0; p < parameters_.size(); ++p) {
    Parameter& parameter = *parameters_[p];
    if (parameter.statistic) continue;
    if (const float rate = std::exchange(parameter.step_rate, 0); rate != 0) {  // done in the backward pass
      assert(is_plain && rate == descent.rate);
      continue;
    }
    Floats& values = parameter.values.values;
    const float* gradient = parameter.gradient.values.data();
    if (descent.adam) {
      adam_.move(values.data(), gradient, velocities_[p].values.data(), second_moments_[p].values.data(),
                 values.size(), 0);
    } else if (is_plain) {
      kernels.descend(values.data(), gradient, values.size(), descent.rate);
    } else {
      kernels.descend_with_momentum({values.data(), gradient, velocities_[p].values.data(), values.size(),
                                     descent.rate, descent.momentum, descent.decay, parameter.decays});
    }
  }
}

void Network::stop() {
  for (std::vector<Matrix>* all : {&velocities_, &second_moments_}) {
    for (Matrix& of_parameter : *all) of_parameter.values.clear();
  }
  adam_.restart();
  for (Parameter* parameter : parameters_) parameter->step_rate = 0;
}

}  // namespace bitfed
