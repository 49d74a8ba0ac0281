#pragma once

#include "bitfed/nn/layers/layer.h"

namespace bitfed {

// The bounds that an activation clips to; those of kNone are infinite. Not for kSign.
ClipBounds clip_bounds(Activation activation);

// An activation by itself. Gradients pass where the output is within the activation's bounds and not on one.
class ActivationLayer : public Layer {
 public:
  // The input has no border, and channels padded to kLanes; the output has the border asked for.
  ActivationLayer(size_t batch, const ImageShape& input, Activation activation, size_t border = 0);

  void forward(const Images& input, size_t images, Pass pass) override;
  void backward(const Images& input, size_t images, Images* input_gradient) override;

 protected:
  // The output becomes activation(x + shift), with a shift for every channel.
  void activate(const Images& input, size_t images, const float* shift);
  struct Range {
    size_t first, count;  // images
  };
  // From the output's gradient to that of x + shift, which may be output_gradient() itself.
  void pass_gradient(const Range& images, Images* gradient);

 private:
  // Calls work(image, row, pixels) for pieces of the output without a border between their pixels: all of the
  // images, or their rows.
  template <typename Work>
  void for_each_run(const Range& images, const Work& work) const;

  Activation activation_;
  Floats ones_, zeros_;  // a value for every channel
};

}  // namespace bitfed
