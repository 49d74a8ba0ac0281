#include "bitfed/nn/layers/load_pixels.h"

#include <type_traits>

namespace bitfed {

void load_pixels(std::span<const float> table, std::span<const uint8_t> pixels, size_t image,
                 Images* images) {
  const ImageShape shape = images->shape();
  const size_t channels = table.size() / 256;
  // In small networks it takes longer than all else: a loop for each usual number of channels.
  const auto load = [&](auto count) {
    const uint8_t* pixel = pixels.data();
    const float* const values = table.data();
    float* row = images->row(image, 0);
    for (size_t y = 0; y < shape.height; ++y, row += shape.row_floats()) {
      float* const end = row + shape.width * shape.channels;
      for (float* to = row; to != end; to += shape.channels) {
        for (size_t c = 0; c < count; ++c) to[c] = values[256 * c + *pixel++];
      }
    }
  };
  if (channels == 1) return load(std::integral_constant<size_t, 1>());
  if (channels == 3) return load(std::integral_constant<size_t, 3>());
  load(channels);
}

}  // namespace bitfed
