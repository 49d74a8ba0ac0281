#include "bitfed/nn/mlp/mlp_trainer.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace bitfed {
namespace {

constexpr float kMomentum = 0.9f;  // of the running statistics

}  // namespace

MlpTrainer::MlpTrainer(const MlpShape& shape, size_t batch, const AdamOptions& adam, MlpOptimizer optimizer)
    : shape_(shape),
      adam_(adam),
      optimizer_(optimizer),
      inputs_(batch, shape.widths.front()),
      loss_sums_(batch),
      loss_margins_(batch) {
  assert(optimizer == MlpOptimizer::kAdam || !shape.binary);  // Adam's step keeps latent weights within ±1
  for (size_t i = 0; i < shape.layers(); ++i) layers_.push_back(make_layer(i, batch));
}

MlpTrainer::Layer MlpTrainer::make_layer(size_t index, size_t batch) const {
  const auto trained = [](size_t count) {
    return Trained{Floats(count), Floats(count), Floats(count), Floats(count)};
  };
  Layer layer;
  layer.in = shape_.widths[index];
  layer.out = shape_.widths[index + 1];
  layer.stride = padded(layer.out);
  layer.weights = trained(layer.in * layer.stride);
  layer.shift = trained(layer.out);
  layer.ones = layer.unused = layer.mean = layer.variance = layer.batch_mean = layer.batch_variance =
      layer.inverse_std = Floats(layer.out);
  layer.used = Floats(layer.in * layer.stride);
  std::fill_n(layer.ones.data(), layer.ones.size(), 1.0f);
  if (index > 0) layer.transposed = Matrix(layer.stride, layer.in);
  layer.sums = layer.activations = layer.gradient = Matrix(batch, layer.out);
  return layer;
}

void MlpTrainer::load(const MlpParameters& parameters) {
  assert(parameters.weights.size() == shape_.weights() && parameters.shifts.size() == shape_.units());
  const float* weights = parameters.weights.data();
  size_t unit = 0;
  for (Layer& layer : layers_) {
    for (Trained* trained : {&layer.weights, &layer.shift}) {
      trained->first.clear();
      trained->second.clear();
    }
    for (size_t row = 0; row < layer.in; ++row, weights += layer.out)
      std::copy_n(weights, layer.out, layer.weights.values.data() + row * layer.stride);
    std::copy_n(parameters.shifts.data() + unit, layer.out, layer.shift.values.data());
    std::copy_n(parameters.means.data() + unit, layer.out, layer.mean.data());
    std::copy_n(parameters.variances.data() + unit, layer.out, layer.variance.data());
    unit += layer.out;
  }
  adam_.restart();
}

MlpParameters MlpTrainer::parameters() const {
  MlpParameters parameters;
  for (const Layer& layer : layers_) {
    for (size_t row = 0; row < layer.in; ++row) {
      const float* weights = layer.weights.values.data() + row * layer.stride;
      parameters.weights.insert(parameters.weights.end(), weights, weights + layer.out);
    }
    const auto append = [&](const Floats& from, std::vector<float>* to) {
      to->insert(to->end(), from.data(), from.data() + layer.out);
    };
    append(layer.shift.values, &parameters.shifts);
    append(layer.mean, &parameters.means);
    append(layer.variance, &parameters.variances);
  }
  return parameters;
}

Activation MlpTrainer::activation(size_t layer) const {
  if (layer + 1 == layers_.size()) return Activation::kNone;
  return shape_.binary ? Activation::kSign : Activation::kRelu;
}

void MlpTrainer::forward(size_t rows) {
  const NeuralKernels& kernels = neural_kernels();
  const Matrix* input = &inputs_;
  for (size_t i = 0; i < layers_.size(); ++i) {
    Layer& layer = layers_[i];
    const float* weights = layer.weights.values.data();
    if (shape_.binary) {
      kernels.signs(weights, layer.used.size(), 0, layer.used.data());
      weights = layer.used.data();
    }
    kernels.multiply({input->values.data(), input->stride, 1, weights, layer.stride, layer.sums.values.data(),
                      layer.stride, rows, layer.stride, layer.in});
    kernels.norm_forward({layer.sums.values.data(), rows, layer.stride, layer.ones.data(),
                          layer.shift.values.data(), kNormEpsilon, activation(i),
                          layer.activations.values.data(), layer.batch_mean.data(),
                          layer.batch_variance.data(), layer.inverse_std.data()});
    if (rows > 1) {
      for (size_t unit = 0; unit < layer.out; ++unit) {
        layer.mean[unit] = kMomentum * layer.mean[unit] + (1 - kMomentum) * layer.batch_mean[unit];
        layer.variance[unit] =
            kMomentum * layer.variance[unit] + (1 - kMomentum) * layer.batch_variance[unit];
      }
    }
    input = &layer.activations;
  }
}

// On entry the last layer's activations hold the gradient of the logits.
void MlpTrainer::backward(size_t rows) {
  const NeuralKernels& kernels = neural_kernels();
  float* gradient = layers_.back().activations.values.data();
  for (size_t i = layers_.size(); i-- > 0;) {
    Layer& layer = layers_[i];
    kernels.norm_backward({gradient, rows, layer.stride, layer.sums.values.data(), layer.batch_mean.data(),
                           layer.inverse_std.data(), layer.ones.data(), layer.shift.values.data(),
                           activation(i), layer.unused.data(), layer.shift.gradient.data(), gradient});
    const Matrix& input = i == 0 ? inputs_ : layers_[i - 1].activations;
    kernels.multiply({input.values.data(), 1, input.stride, gradient, layer.stride,
                      layer.weights.gradient.data(), layer.stride, layer.in, layer.stride, rows});
    if (i == 0) break;
    const float* weights = shape_.binary ? layer.used.data() : layer.weights.values.data();
    kernels.transpose(weights, layer.in, layer.stride, layer.transposed.values.data(),
                      layer.transposed.stride);
    Matrix& below = layers_[i - 1].gradient;
    kernels.multiply({gradient, layer.stride, 1, layer.transposed.values.data(), layer.transposed.stride,
                      below.values.data(), below.stride, rows, below.stride, layer.out});
    gradient = below.values.data();
  }
}

void MlpTrainer::move(Trained* trained, bool latent) const {
  if (optimizer_ == MlpOptimizer::kDescent) {
    neural_kernels().descend(trained->values.data(), trained->gradient.data(), trained->values.size(),
                             static_cast<float>(adam_.options().rate));
    return;
  }
  adam_.move(trained->values.data(), trained->gradient.data(), trained->first.data(), trained->second.data(),
             trained->values.size(), latent ? 1.0f : 0.0f);
}

float MlpTrainer::step(std::span<const uint16_t> labels) {
  const size_t rows = labels.size();
  assert(rows > 0 && rows <= inputs_.rows);
  forward(rows);
  Layer& last = layers_.back();
  neural_kernels().softmax_loss(last.activations.values.data(), rows, last.stride, last.out, labels.data(),
                                loss_sums_.data(), loss_margins_.data());
  float loss = 0;
  for (size_t r = 0; r < rows; ++r) loss += std::log(loss_sums_[r]) + loss_margins_[r];
  backward(rows);
  adam_.begin_step();
  for (Layer& layer : layers_) {
    move(&layer.weights, shape_.binary);
    move(&layer.shift, false);
  }
  return loss / static_cast<float>(rows);
}

}  // namespace bitfed
