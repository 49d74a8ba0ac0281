#include "bitfed/nn/layers/sequence.h"

namespace bitfed {

void Sequence::forward(const Images& input, size_t images, Pass pass) {
  const Images* from = &input;
  for (const auto& layer : layers_) {
    layer->forward(*from, images, pass);
    from = &layer->output();
  }
}

void Sequence::backward(const Images& input, size_t images, Images* input_gradient) {
  backward_to_first(images);
  layers_[0]->backward(input, images, input_gradient);
}

void Sequence::backward_beside(const Images& input, size_t images, const Images& beside,
                               Images* input_gradient) {
  backward_to_first(images);
  layers_[0]->backward_beside(input, images, beside, input_gradient);
}

void Sequence::backward_to_first(size_t images) {
  for (size_t i = layers_.size() - 1; i > 0; --i) {
    Layer& before = *layers_[i - 1];
    layers_[i]->backward(before.output(), images, &before.output_gradient());
  }
}

std::vector<Parameter*> Sequence::parameters() const {
  std::vector<Parameter*> all;
  for (const auto& layer : layers_) {
    const std::vector<Parameter*> some = layer->parameters();
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

void Sequence::start(const RandomStream& random) {
  for (size_t i = 0; i < layers_.size(); ++i) layers_[i]->start(random.substream(i));
}

void Sequence::begin_round() {
  for (const auto& layer : layers_) layer->begin_round();
}

void Sequence::begin_epoch(double part) {
  for (const auto& layer : layers_) layer->begin_epoch(part);
}

void Sequence::end_round() {
  for (const auto& layer : layers_) layer->end_round();
}

std::vector<std::vector<float>> Sequence::deployed() {
  std::vector<std::vector<float>> all;
  for (const auto& layer : layers_) {
    for (std::vector<float>& numbers : layer->deployed()) all.push_back(std::move(numbers));
  }
  return all;
}

}  // namespace bitfed
