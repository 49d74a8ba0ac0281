#include "bitfed/nn/layers/residual_block.h"

#include <cassert>
#include <limits>

namespace bitfed {
namespace {

ClipBounds bounds_of(Activation activation) {
  assert(activation == Activation::kRelu || activation == Activation::kHardtanh);
  if (activation == Activation::kRelu) return {0, std::numeric_limits<float>::infinity()};
  return {-1, 1};
}

}  // namespace

ResidualBlock::ResidualBlock(size_t batch, const ImageShape& output, Activation activation,
                             std::unique_ptr<Layer> entry, Sequence path, Sequence shortcut)
    : Layer(batch, output),
      bounds_(bounds_of(activation)),
      entry_(std::move(entry)),
      path_(std::move(path)),
      shortcut_(std::move(shortcut)) {
  assert(path_.output().shape() == output);
  path_.share_output_gradient(&output_gradient());
  if (shortcut_.empty()) return;
  assert(shortcut_.output().shape() == output);
  shortcut_.share_output_gradient(&output_gradient());
}

void ResidualBlock::forward(const Images& input, size_t images, Pass pass) {
  entry_->forward(input, images, pass);
  path_.forward(entry_->output(), images, pass);
  if (!shortcut_.empty()) shortcut_.forward(entry_->output(), images, pass);
  const Images& shortcut = shortcut_.empty() ? input : shortcut_.output();
  neural_kernels().add_clipped(path_.output().data(), shortcut.data(),
                               images * output_.shape().image_floats(), bounds_, output_.data());
}

void ResidualBlock::backward(const Images& input, size_t images, Images* input_gradient) {
  neural_kernels().clip_back(output_.data(), images * output_.shape().image_floats(), bounds_,
                             output_gradient().data());
  Images& of_entry = entry_->output_gradient();
  path_.backward(entry_->output(), images, &of_entry);
  if (shortcut_.empty()) return entry_->backward_beside(input, images, output_gradient(), input_gradient);
  shortcut_.backward_beside(entry_->output(), images, of_entry, &of_entry);
  entry_->backward(input, images, input_gradient);
}

std::vector<Parameter*> ResidualBlock::parameters() {
  std::vector<Parameter*> all = entry_->parameters();
  for (const Sequence* part : {&path_, &shortcut_}) {
    const std::vector<Parameter*> more = part->parameters();
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

void ResidualBlock::start(RandomStream random) {
  path_.start(random.substream(0));
  shortcut_.start(random.substream(1));
  entry_->start(random.substream(2));
}

void ResidualBlock::begin_round() {
  path_.begin_round();
  shortcut_.begin_round();
}

void ResidualBlock::begin_epoch(double part) {
  entry_->begin_epoch(part);
  path_.begin_epoch(part);
  shortcut_.begin_epoch(part);
}

void ResidualBlock::end_round() {
  path_.end_round();
  shortcut_.end_round();
}

std::vector<std::vector<float>> ResidualBlock::deployed() {
  std::vector<std::vector<float>> all = entry_->deployed();
  for (Sequence* part : {&path_, &shortcut_}) {
    for (std::vector<float>& numbers : part->deployed()) all.push_back(std::move(numbers));
  }
  return all;
}

}  // namespace bitfed
