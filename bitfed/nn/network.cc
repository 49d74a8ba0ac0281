#include "bitfed/nn/network.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace bitfed {

void Network::start(const RandomStream& random) {
  for (size_t i = 0; i < layers_.size(); ++i) layers_[i]->start(random.substream(i));
  loss_sums_.resize(batch());
  loss_margins_.resize(batch());
}

std::vector<Parameter*> Network::parameters() {
  std::vector<Parameter*> all;
  for (const auto& layer : layers_) {
    const std::vector<Parameter*> some = layer->parameters();
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

std::vector<std::vector<float>> Network::deployed() {
  std::vector<std::vector<float>> all;
  for (const auto& layer : layers_) {
    for (std::vector<float>& numbers : layer->deployed()) all.push_back(std::move(numbers));
  }
  return all;
}

void Network::forward(size_t images, Pass pass) {
  const Images* input = &input_;
  for (const auto& layer : layers_) {
    layer->forward(*input, images, pass);
    input = &layer->output();
  }
}

float Network::differentiate(std::span<const uint16_t> labels) {
  const size_t images = labels.size();
  assert(images > 0 && images <= batch());
  forward(images, Pass::kTraining);
  Layer& last = *layers_.back();
  const size_t columns = last.output().shape().channels;
  Images& gradient = last.output_gradient();
  std::copy_n(last.output().data(), images * columns, gradient.data());
  neural_kernels().softmax_loss(gradient.data(), images, columns, classes_, labels.data(), loss_sums_.data(),
                                loss_margins_.data());
  float loss = 0;
  for (size_t i = 0; i < images; ++i) loss += std::log(loss_sums_[i]) + loss_margins_[i];
  for (size_t i = layers_.size(); i-- > 0;) {
    const Images& input = i == 0 ? input_ : layers_[i - 1]->output();
    layers_[i]->backward(input, images, i == 0 ? nullptr : &layers_[i - 1]->output_gradient());
  }
  return loss / static_cast<float>(images);
}

void Network::begin_round() {
  for (const auto& layer : layers_) layer->begin_round();
}

void Network::begin_epoch(double part) {
  for (const auto& layer : layers_) layer->begin_epoch(part);
}

void Network::end_round() {
  for (const auto& layer : layers_) layer->end_round();
}

void Network::descend(float rate) {
  for (Parameter* parameter : parameters()) {
    if (!parameter->statistic) {
      neural_kernels().descend(parameter->values.values.data(), parameter->gradient.values.data(),
                               parameter->values.values.size(), rate);
    }
  }
}

void Network::predict(size_t images) {
  forward(images, Pass::kPrediction);
}

}  // namespace bitfed
