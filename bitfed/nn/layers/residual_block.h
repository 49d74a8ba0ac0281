#pragma once

#include <memory>
#include <optional>

#include "bitfed/nn/layers/sequence.h"

namespace bitfed {

// activation(path(entry(x)) + shortcut). The shortcut is x itself, or shortcut(entry(x)) where the block
// changes the images' shape. The entry puts the border about x, or takes its signs, for both paths.
class ResidualBlock : public Layer {
 public:
  // `output`: the shape that both paths end with. Without a shortcut it is x itself.
  ResidualBlock(size_t batch, const ImageShape& output, Activation activation,
                std::unique_ptr<AddingLayer> entry, Sequence path,
                std::optional<AddingSequence> shortcut = std::nullopt);

  void forward(const Images& input, size_t images, Pass pass) override;
  void backward(const Images& input, size_t images, Images* input_gradient) override;
  void for_each_layer(const RandomStream& random, const Visit& visit) override;
  void share_output_gradient(Images* gradient) override;

 private:
  void give_gradient(Images* gradient);

  ClipBounds bounds_;
  std::unique_ptr<AddingLayer> entry_;
  Sequence path_;
  std::optional<AddingSequence> shortcut_;
  // The gradient of path + shortcut; empty unless the output's gradient is shared, and so cannot hold it.
  Images sum_gradient_;
};

}  // namespace bitfed
