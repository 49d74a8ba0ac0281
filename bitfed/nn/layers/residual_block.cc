#include "bitfed/nn/layers/residual_block.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "bitfed/nn/layers/activation_layer.h"

namespace bitfed {

ResidualBlock::ResidualBlock(size_t batch, const ImageShape& output, Activation activation,
                             std::unique_ptr<AddingLayer> entry, Sequence path,
                             std::optional<AddingSequence> shortcut)
    : Layer(batch, output),
      bounds_(clip_bounds(activation)),
      entry_(std::move(entry)),
      path_(std::move(path)),
      shortcut_(std::move(shortcut)) {
  assert(path_.output().shape() == output);
  if (shortcut_) {
    assert(shortcut_->output().shape() == output);
    // The shortcut reads the entry's output after the path wrote its gradient.
    assert(&entry_->output() != &entry_->output_gradient());
  }
  give_gradient(&output_gradient());
}

void ResidualBlock::give_gradient(Images* gradient) {
  path_.share_output_gradient(gradient);
  if (shortcut_) shortcut_->share_output_gradient(gradient);
}

// At the end of another block's path: the other block's shortcut reads the output's gradient, too.
void ResidualBlock::share_output_gradient(Images* gradient) {
  Layer::share_output_gradient(gradient);
  sum_gradient_ = Images(output_.batch(), output_.shape());
  give_gradient(&sum_gradient_);
}

void ResidualBlock::forward(const Images& input, size_t images, Pass pass) {
  entry_->forward(input, images, pass);
  path_.forward(entry_->output(), images, pass);
  if (shortcut_) shortcut_->forward(entry_->output(), images, pass);
  const Images& shortcut = shortcut_ ? shortcut_->output() : input;
  neural_kernels().add_clipped(path_.output().data(), shortcut.data(),
                               images * output_.shape().image_floats(), bounds_, output_.data());
}

void ResidualBlock::backward(const Images& input, size_t images, Images* input_gradient) {
  const size_t count = images * output_.shape().image_floats();
  const Images& from = output_gradient();
  Images* gradient = sum_gradient_.batch() > 0 ? &sum_gradient_ : &output_gradient();
  neural_kernels().clip_backward(output_.data(), from.data(), count, bounds_, gradient->data());
  Images& of_entry = entry_->output_gradient();
  path_.backward(entry_->output(), images, &of_entry);
  if (shortcut_) shortcut_->backward_adding(entry_->output(), images, of_entry, &of_entry);
  if (shortcut_ || input_gradient == nullptr) return entry_->backward(input, images, input_gradient);
  entry_->backward_adding(input, images, *gradient, input_gradient);
}

void ResidualBlock::for_each_layer(const RandomStream& random, const Visit& visit) {
  entry_->for_each_layer(random.substream(2), visit);
  path_.for_each_layer(random.substream(0), visit);
  if (shortcut_) shortcut_->for_each_layer(random.substream(1), visit);
}

}  // namespace bitfed
