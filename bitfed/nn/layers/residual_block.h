#pragma once

#include <memory>

#include "bitfed/nn/layers/sequence.h"

namespace bitfed {

// activation(path(entry(x)) + shortcut): the shortcut is x itself, or a path of its own from entry(x), where
// the block changes the images' shape. The entry puts the border about x, or takes its signs: both paths
// begin with a convolution.
class ResidualBlock : public Layer {
 public:
  // `output`: the shape that both paths end with. An empty shortcut is x itself.
  ResidualBlock(size_t batch, const ImageShape& output, Activation activation, std::unique_ptr<Layer> entry,
                Sequence path, Sequence shortcut);

  void forward(const Images& input, size_t images, Pass pass) override;
  void backward(const Images& input, size_t images, Images* input_gradient) override;
  std::vector<Parameter*> parameters() override;
  void start(RandomStream random) override;
  void begin_round() override;
  void begin_epoch(double part) override;
  void end_round() override;
  std::vector<std::vector<float>> deployed() override;

 private:
  ClipBounds bounds_;
  std::unique_ptr<Layer> entry_;
  Sequence path_;
  Sequence shortcut_;
};

}  // namespace bitfed
