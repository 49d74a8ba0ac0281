#pragma once

#include <vector>

#include "bitfed/nn/layers/layer.h"

namespace bitfed {

// Training keeps a value with probability 1 - rate and divides it by 1 - rate; prediction changes nothing.
// Value i of a batch (by image, row, column, used channel) of the n-th training pass since seed() is kept by
// draw i of the stream's substream n, so that masks do not depend on threads, instruction sets or padding.
class Dropout : public Layer {
 public:
  // 0 <= rate < 1; the input has no border.
  Dropout(size_t batch, const ImageShape& input, double rate);

  void forward(const Images& input, size_t images, Pass pass) override;
  void backward(const Images& input, size_t images, Images* input_gradient) override;

 private:
  void on_initialise(RandomStream random) override { on_seed(random); }
  void on_seed(const RandomStream& random) override;
  void make_room_for_padding(size_t pixels);

  uint32_t dropped_below_;  // of all 2^32 draws those that drop a value
  float scale_;
  RandomStream random_;
  uint64_t passes_ = 0;
  std::vector<uint32_t> draws_;  // of some pixels
  Floats mask_;                  // 0 or the scale for every value
};

}  // namespace bitfed
