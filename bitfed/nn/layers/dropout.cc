#include "bitfed/nn/layers/dropout.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace bitfed {
namespace {

// Pixels whose draws are made together: they stay in the first-level cache. Whole blocks of draws, and whole
// registers.
size_t pixels_together(size_t used_channels) {
  constexpr size_t kDraws = 2048;
  return std::max<size_t>(1, kDraws / used_channels / kLanes) * kLanes;
}

}  // namespace

Dropout::Dropout(size_t batch, const ImageShape& input, double rate)
    : Layer(batch, input),
      dropped_below_(static_cast<uint32_t>(rate * 0x1p32)),
      scale_(static_cast<float>(1 / (1 - rate))),
      random_({.purpose = "dropout"}),
      draws_(pixels_together(input.used_channels()) * input.channels),
      mask_(batch * input.image_floats()) {
  assert(input.border == 0 && rate >= 0 && rate < 1);
}

void Dropout::on_seed(const RandomStream& random) {
  random_ = random;
  passes_ = 0;
}

// Padding channels draw nothing, and their values are 0 whatever they draw.
void Dropout::make_room_for_padding(size_t pixels) {
  const ImageShape& shape = output_.shape();
  for (size_t pixel = pixels; shape.padding_channels > 0 && pixel-- > 0;)
    std::copy_backward(draws_.data() + pixel * shape.used_channels(),
                       draws_.data() + (pixel + 1) * shape.used_channels(),
                       draws_.data() + pixel * shape.channels + shape.used_channels());
}

void Dropout::forward(const Images& input, size_t images, Pass pass) {
  const ImageShape& shape = output_.shape();
  if (pass == Pass::kPrediction) {
    std::copy_n(input.data(), images * shape.image_floats(), output_.data());
    return;
  }
  const RandomStream::Blocks from = random_.substream(passes_++).blocks();
  RandomBlocks blocks{{from.key[0], from.key[1]}, from.lane, from.position};
  const size_t pixels = images * shape.pixels();
  const size_t together = pixels_together(shape.used_channels());
  for (size_t first = 0; first < pixels; first += together) {
    const size_t count = std::min(together, pixels - first);
    const size_t drawn = (count * shape.used_channels() + 3) / 4;
    neural_kernels().draw(blocks, drawn, draws_.data());
    blocks.position += drawn;
    make_room_for_padding(count);
    const size_t at = first * shape.channels;
    neural_kernels().drop({draws_.data(), dropped_below_, scale_, input.data() + at,
                           padded(count * shape.channels), mask_.data() + at, output_.data() + at});
  }
}

void Dropout::backward(const Images& /*input*/, size_t images, Images* input_gradient) {
  if (input_gradient == nullptr) return;
  // Registers that every instruction set has; arrays are padded to whole ones.
  typedef float FourFloats __attribute__((vector_size(16)));
  const auto* gradient = reinterpret_cast<const FourFloats*>(std::as_const(output_gradient()).data());
  const auto* mask = reinterpret_cast<const FourFloats*>(mask_.data());
  auto* to = reinterpret_cast<FourFloats*>(input_gradient->data());
  const size_t count = padded(images * output_.shape().image_floats()) / 4;
  for (size_t i = 0; i < count; ++i) to[i] = gradient[i] * mask[i];
}

}  // namespace bitfed
