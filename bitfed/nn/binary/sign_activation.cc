#include "bitfed/nn/binary/sign_activation.h"

#include <cassert>
#include <cmath>

#include "bitfed/nn/kernels/binary_kernels.h"
#include "bitfed/nn/layers/norm_parameters.h"

namespace bitfed {
namespace {

constexpr float kTiny = 1e-6f;  // equal values have no deviation

Images signs_of(size_t batch, const ImageShape& shape, SignForm form) {
  return form == SignForm::kBits ? Images::of_bits(batch, shape) : Images(batch, shape);
}

}  // namespace

SignActivation::SignActivation(size_t batch, const ImageShape& input, SignForm form)
    : Layer(signs_of(batch, input.with_border(1), form)),
      form_(form),
      streams_(batch * input.image_floats() * sizeof(float) >= kStreamedBytes),
      means_(batch),
      inverse_deviations_(batch) {
  assert(input.border == 0 && input.channels % kLanes == 0 && input.idle_channels == 0);
}

SignActivation::SignActivation(size_t batch, const ImageShape& input, SignForm form, const std::string& name)
    : SignActivation(batch, input, form) {
  running_mean_.emplace(name + ".mean", 1, 1, true);
}

std::vector<Parameter*> SignActivation::parameters() {
  if (!running_mean_) return {};
  return {&*running_mean_};
}

void SignActivation::start(RandomStream /*random*/) {
  if (running_mean_) running_mean_->values.values.clear();
}

void SignActivation::gather(float mean) {
  float& running = *running_mean_->values.row(0);
  running = (1 - NormParameters::kMomentum) * running + NormParameters::kMomentum * mean;
}

// By images, whose squares are added up in doubles: a sum of floats over a large batch would lose its ends.
float SignActivation::deviation(const Images& input, size_t first, size_t images, float mean) const {
  const size_t count = input.shape().image_floats();
  double squares = 0;
  for (size_t image = first; image < first + images; ++image) {
    const double own = neural_kernels().deviation(input.row(image, 0), count, nullptr, count, mean);
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
    const bool gathered = running_mean_ && pass == Pass::kPrediction;
    const float mean =
        gathered ? *running_mean_->values.row(0) : kernels.mean(input.row(first, 0), count, count);
    for (size_t image = first; image < first + step; ++image) put_signs(input, image, mean);
    if (pass == Pass::kPrediction) continue;
    means_[first] = mean;
    inverse_deviations_[first] = 1 / (deviation(input, first, step, mean) + kTiny);
    if (running_mean_) gather(mean);
  }
}

void SignActivation::go_back(const Images& input, size_t images, const Images* beside,
                             Images* input_gradient) {
  const size_t step = together(images);
  const size_t count = step * input.shape().image_floats();
  for (size_t first = 0; first < images; first += step) {
    neural_kernels().sign_back({input.row(first, 0), count, means_[first], inverse_deviations_[first],
                                kSurrogate, output_gradient().row(first, 0), input_gradient->row(first, 0),
                                streams_, beside == nullptr ? nullptr : beside->row(first, 0)});
  }
}

}  // namespace bitfed
