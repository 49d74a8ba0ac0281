#include "bitfed/nn/layers/border.h"

#include <algorithm>
#include <cassert>

#include "bitfed/nn/kernels/kernels.h"

namespace bitfed {

Border::Border(size_t batch, const ImageShape& input, size_t border)
    : AddingLayer(batch, input.with_border(border)) {
  assert(input.border == 0);
}

void Border::forward(const Images& input, size_t images, Pass /*pass*/) {
  const ImageShape& shape = input.shape();
  for (size_t image = 0; image < images; ++image) {
    for (size_t y = 0; y < shape.height; ++y)
      std::copy_n(input.row(image, y), shape.row_floats(), output_.row(image, y));
  }
}

void Border::backward(const Images& /*input*/, size_t images, Images* input_gradient) {
  if (input_gradient == nullptr) return;
  std::copy_n(output_gradient().data(), images * input_gradient->shape().image_floats(),
              input_gradient->data());
}

void Border::backward_adding(const Images& /*input*/, size_t images, const Images& other,
                             Images* input_gradient) {
  neural_kernels().add(output_gradient().data(), other.data(),
                       images * input_gradient->shape().image_floats(), input_gradient->data());
}

}  // namespace bitfed
