#include "bitfed/nn/binary/sign_activation.h"

#include <cassert>
#include <cmath>

#include "bitfed/nn/kernels/binary_kernels.h"
#include "bitfed/nn/norm/norm_parameters.h"

namespace bitfed {
namespace {

constexpr float kTiny = 1e-6f;  // the standard deviation of equal values is 0

Images signs_of(size_t batch, const ImageShape& shape, SignForm form) {
  return form == SignForm::kBits ? Images::of_bits(batch, shape) : Images(batch, shape);
}

}  // namespace

SignActivation::SignActivation(size_t batch, const ImageShape& input, SignForm form, size_t border)
    : AddingLayer(signs_of(batch, input.with_border(border), form)),
      form_(form),
      streams_(batch * input.image_floats() * sizeof(float) >= kStreamedBytes),
      means_(batch),
      inverse_stds_(batch) {
  assert(input.border == 0 && input.channels % kLanes == 0 && input.padding_channels == 0);
}

SignActivation::SignActivation(size_t batch, const ImageShape& input, SignForm form, const std::string& name,
                               size_t border)
    : SignActivation(batch, input, form, border) {
  running_mean_.emplace(name + ".mean", 1, 1, true);
}

std::vector<Parameter*> SignActivation::own_parameters() {
  if (!running_mean_) return {};
  return {&*running_mean_};
}

void SignActivation::on_initialise(RandomStream /*random*/) {
  if (running_mean_) running_mean_->values.values.clear();
}

void SignActivation::accumulate(float mean) {
  float& running = *running_mean_->values.row(0);
  running = (1 - NormParameters::kMomentum) * running + NormParameters::kMomentum * mean;
}

// By images, whose squares are summed in doubles: a float sum over a large batch would lose digits.
float SignActivation::standard_deviation(const Images& input, size_t first, size_t images, float mean) const {
  const size_t count = input.shape().image_floats();
  double squares = 0;
  for (size_t image = first; image < first + images; ++image) {
    const double own = neural_kernels().standard_deviation(input.row(image, 0), count, nullptr, count, mean);
    squares += own * own;
  }
  return static_cast<float>(std::sqrt(squares / static_cast<double>(images)));
}

void SignActivation::put_signs(const Images& input, size_t image, float mean) {
  const ImageShape& shape = input.shape();
  for (size_t y = 0; y < shape.height; ++y) {
    if (form_ == SignForm::kBits) {
      binary_kernels().signs_about(input.row(image, y), shape.width, shape.channels, mean,
                                   output_.word_row(image, y));
    } else {
      neural_kernels().signs(input.row(image, y), shape.row_floats(), mean, output_.row(image, y));
    }
  }
}

void SignActivation::forward(const Images& input, size_t images, Pass pass) {
  const NeuralKernels& kernels = neural_kernels();
  const size_t step = together(images);
  const size_t count = step * input.shape().image_floats();
  for (size_t first = 0; first < images; first += step) {
    const bool running = running_mean_ && pass == Pass::kPrediction;
    const float mean =
        running ? *running_mean_->values.row(0) : kernels.mean(input.row(first, 0), count, count);
    for (size_t image = first; image < first + step; ++image) put_signs(input, image, mean);
    if (pass == Pass::kPrediction) continue;
    means_[first] = mean;
    inverse_stds_[first] = 1 / (standard_deviation(input, first, step, mean) + kTiny);
    if (running_mean_) accumulate(mean);
  }
}

void SignActivation::backward(const Images& input, size_t images, Images* input_gradient) {
  if (input_gradient != nullptr) differentiate(input, images, nullptr, input_gradient);
}

void SignActivation::backward_adding(const Images& input, size_t images, const Images& other,
                                     Images* input_gradient) {
  differentiate(input, images, &other, input_gradient);
}

void SignActivation::differentiate(const Images& input, size_t images, const Images* other,
                                   Images* input_gradient) {
  const size_t step = together(images);
  const size_t count = step * input.shape().image_floats();
  for (size_t first = 0; first < images; first += step) {
    neural_kernels().sign_backward({input.row(first, 0), count, means_[first], inverse_stds_[first],
                                    kSurrogate, output_gradient().row(first, 0),
                                    input_gradient->row(first, 0), streams_,
                                    other == nullptr ? nullptr : other->row(first, 0)});
  }
}

}  // namespace bitfed
