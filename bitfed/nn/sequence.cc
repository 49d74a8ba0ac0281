#include "bitfed/nn/sequence.h"

namespace bitfed {

void Sequence::forward(const Images& input, size_t images, Pass pass) {
  const Images* from = &input;
  for (const auto& layer : layers_) {
    layer->forward(*from, images, pass);
    from = &layer->output();
  }
}

void Sequence::backward(const Images& input, size_t images, Images* input_gradient) {
  for (size_t i = layers_.size(); i-- > 0;) {
    const Images& from = i == 0 ? input : layers_[i - 1]->output();
    layers_[i]->backward(from, images, i == 0 ? input_gradient : &layers_[i - 1]->output_gradient());
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
