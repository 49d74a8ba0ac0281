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

void Sequence::backward_to_first(size_t images) {
  for (size_t i = layers_.size() - 1; i > 0; --i) {
    Layer& before = *layers_[i - 1];
    layers_[i]->backward(before.output(), images, &before.output_gradient());
  }
}

void Sequence::for_each_layer(const RandomStream& random, const Visit& visit) {
  for (size_t i = 0; i < layers_.size(); ++i) layers_[i]->for_each_layer(random.substream(places_[i]), visit);
}

}  // namespace bitfed
