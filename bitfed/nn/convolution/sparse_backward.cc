#include "bitfed/nn/convolution/sparse_backward.h"

#include <algorithm>

namespace bitfed {
namespace {

// Of values that are not 0, in percent; above it products of all values are faster.
constexpr size_t kMaxShare = 45;

// The rows of the input that a band's products read stay in the first-level cache.
constexpr size_t kBandBytes = size_t{24} * 1024;

}  // namespace

SparseBackward::SparseBackward(const ImageShape& input, const ImageShape& output,
                               const ConvolutionKernel& kernel)
    : input_(input),
      output_(output),
      side_(kernel.side),
      by_filter_(output.channels * kernel.taps() * input.channels) {
  const size_t row_bytes = kernel.stride * input.row_floats() * sizeof(float);
  band_pixels_ = std::clamp<size_t>(kBandBytes / row_bytes, 1, output.height) * output.width;
  for (size_t filter = 0; filter < output.channels; ++filter)
    filters_.push_back(static_cast<uint32_t>(filter * kernel.taps() * input.channels));
  band_ = Floats(output.channels * padded(band_pixels_));
  values_.resize(band_pixels_ * output.channels + kLanes);
  offsets_.resize(values_.size());
  ends_.resize(std::max(band_pixels_, output.channels));
  if (input.border > 0) bordered_ = Images(1, input);
}

bool SparseBackward::take(const Images& gradient, size_t images) {
  gradient_ = &gradient;
  images_ = images;
  const size_t count = images * output_.image_floats();
  return 100 * neural_kernels().count_nonzeros(gradient.data(), count) <= kMaxShare * count;
}

template <typename Work>
void SparseBackward::for_each_band(size_t image, const Work& work) {
  for (size_t first = 0; first < output_.pixels(); first += band_pixels_)
    work(Band{image, first, std::min(output_.pixels(), first + band_pixels_)});
}

const float* SparseBackward::gradient_of(const Band& band) const {
  return gradient_->data() + (band.image * output_.pixels() + band.first) * output_.channels;
}

void SparseBackward::list_by_filter(const Band& band, const std::vector<uint32_t>& pixels) {
  const size_t count = band.end - band.first;
  const size_t stride = padded(count);
  neural_kernels().transpose(gradient_of(band), count, output_.channels, band_.data(), stride);
  neural_kernels().list_nonzeros({band_.data(), stride, output_.channels, count, pixels.data() + band.first,
                                  values_.data(), offsets_.data(), ends_.data()});
}

void SparseBackward::list_by_pixel(const Band& band) {
  neural_kernels().list_nonzeros({gradient_of(band), output_.channels, band.end - band.first,
                                  output_.channels, filters_.data(), values_.data(), offsets_.data(),
                                  ends_.data()});
}

void SparseBackward::weights_gradient(const Images& input, const std::vector<uint32_t>& pixels,
                                      Matrix* gradient) {
  const size_t row = side_ * input_.channels;  // of the kernel
  by_filter_.clear();
  for (size_t image = 0; image < images_; ++image) {
    for_each_band(image, [&](const Band& band) {
      list_by_filter(band, pixels);
      for (size_t y = 0; y < side_; ++y) {
        neural_kernels().multiply_sparse(
            {input.data() + image * input_.image_floats() + y * input_.row_floats(), offsets_.data(),
             values_.data(), ends_.data(), by_filter_.data() + y * row, filters_.data(), output_.channels,
             row});
      }
    });
  }
  neural_kernels().transpose(by_filter_.data(), output_.channels, side_ * row, gradient->row(0),
                             output_.channels);
}

// The kernel's last row first, so that a pixel of the input adds up the output's pixels in their order.
void SparseBackward::input_gradient(const Matrix& weights, const std::vector<uint32_t>& pixels, bool adds,
                                    Images* gradient) {
  const size_t row = side_ * input_.channels;  // of the kernel
  neural_kernels().transpose(weights.row(0), side_ * row, output_.channels, by_filter_.data(), side_ * row);
  for (size_t image = 0; image < images_; ++image) {
    const bool has_border = bordered_.batch() > 0;
    float* to = has_border ? bordered_.data() : gradient->row(image, 0);
    if (!adds) std::fill_n(to, input_.image_floats(), 0.0f);
    for (size_t y = 0; has_border && adds && y < input_.height; ++y)
      std::copy_n(gradient->row(image, y), gradient->shape().row_floats(), bordered_.row(0, y));
    for_each_band(image, [&](const Band& band) {
      list_by_pixel(band);
      for (size_t y = side_; y-- > 0;) {
        neural_kernels().multiply_sparse({by_filter_.data() + y * row, offsets_.data(), values_.data(),
                                          ends_.data(), to + y * input_.row_floats(),
                                          pixels.data() + band.first, band.end - band.first, row});
      }
    });
    for (size_t y = 0; has_border && y < input_.height; ++y)
      std::copy_n(bordered_.row(0, y), gradient->shape().row_floats(), gradient->row(image, y));
  }
}

}  // namespace bitfed
