#include "bitfed/nn/layers/dropout.h"

#include <algorithm>
#include <cassert>
#include <functional>

namespace bitfed {

Dropout::Dropout(size_t batch, const ImageShape& input, double rate)
    : Layer(batch, input),
      dropped_below_(static_cast<uint32_t>(rate * 0x1p32)),
      scale_(static_cast<float>(1 / (1 - rate))),
      random_({.purpose = "dropout"}),
      mask_(batch * input.image_floats()) {
  assert(input.border == 0 && rate >= 0 && rate < 1);
}

void Dropout::on_seed(const RandomStream& random) {
  random_ = random;
  passes_ = 0;
}

void Dropout::draw_mask(size_t images) {
  const ImageShape& shape = output_.shape();
  RandomStream random = random_.substream(passes_++);
  draws_.resize(images * shape.pixels() * shape.used_channels());
  random.fill(draws_);
  const uint32_t* draw = draws_.data();
  float* mask = mask_.data();
  for (size_t pixel = 0; pixel < images * shape.pixels(); ++pixel, mask += shape.channels) {
    for (size_t c = 0; c < shape.used_channels(); ++c) mask[c] = *draw++ < dropped_below_ ? 0 : scale_;
  }
}

void Dropout::forward(const Images& input, size_t images, Pass pass) {
  const size_t count = images * output_.shape().image_floats();
  if (pass == Pass::kPrediction) {
    std::copy_n(input.data(), count, output_.data());
    return;
  }
  draw_mask(images);
  std::transform(input.data(), input.data() + count, mask_.data(), output_.data(), std::multiplies<>());
}

void Dropout::backward(const Images& /*input*/, size_t images, Images* input_gradient) {
  if (input_gradient == nullptr) return;
  const float* gradient = output_gradient().data();
  std::transform(gradient, gradient + images * output_.shape().image_floats(), mask_.data(),
                 input_gradient->data(), std::multiplies<>());
}

}  // namespace bitfed
