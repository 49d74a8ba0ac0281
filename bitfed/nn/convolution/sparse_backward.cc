#include "bitfed/nn/convolution/sparse_backward.h"

#include <algorithm>
#include <bit>

namespace bitfed {
namespace {

// Of values that are not 0, in percent; above it products of all values are faster.
constexpr size_t kMaxShare = 45;

// The rows of the input that a band's products read stay in the first-level cache.
constexpr size_t kBandBytes = size_t{24} * 1024;

}  // namespace

SparseBackward::SparseBackward(size_t batch, const ImageShape& input, const ImageShape& output,
                               const ConvolutionKernel& kernel)
    : input_(input),
      output_(output),
      side_(kernel.side),
      masks_(batch * output.image_floats() / kLanes),
      by_filter_(output.channels * kernel.taps() * input.channels) {
  const size_t row_bytes = kernel.stride * input.row_floats() * sizeof(float);
  band_pixels_ = std::clamp<size_t>(kBandBytes / row_bytes, 1, output.height) * output.width;
  for (size_t filter = 0; filter < output.channels; ++filter)
    filters_.push_back(static_cast<uint32_t>(filter * kernel.taps() * input.channels));
  values_.resize(band_pixels_ * output.channels);
  offsets_.resize(values_.size());
  ends_.resize(std::max(band_pixels_, output.channels));
  if (input.border > 0) bordered_ = Images(1, input);
}

bool SparseBackward::take(const Images& gradient, size_t images) {
  gradient_ = &gradient;
  images_ = images;
  const size_t count = images * output_.image_floats();
  return 100 * neural_kernels().find_nonzeros(gradient.data(), count, masks_.data()) <= kMaxShare * count;
}

template <typename Work>
void SparseBackward::for_each_band(size_t image, const Work& work) {
  for (size_t first = 0; first < output_.pixels(); first += band_pixels_)
    work(Band{image, first, std::min(output_.pixels(), first + band_pixels_)});
}

// Calls work(pixel of the image, filter, value) for all that are not 0.
template <typename Work>
void SparseBackward::for_each_value(const Band& band, const Work& work) const {
  for (size_t pixel = band.first; pixel < band.end; ++pixel) {
    const size_t at = (band.image * output_.pixels() + pixel) * output_.channels;
    for (size_t filter = 0; filter < output_.channels; filter += kLanes) {
      for (uint32_t left = masks_[(at + filter) / kLanes]; left != 0; left &= left - 1) {
        const size_t found = filter + static_cast<size_t>(std::countr_zero(left));
        work(pixel, found, gradient_->data()[at + found]);
      }
    }
  }
}

void SparseBackward::list_by_filter(const Band& band, const std::vector<uint32_t>& pixels) {
  std::fill_n(ends_.data(), output_.channels, 0u);
  for_each_value(band, [&](size_t, size_t filter, float) { ++ends_[filter]; });
  uint32_t before = 0;
  for (size_t filter = 0; filter < output_.channels; ++filter) before += std::exchange(ends_[filter], before);
  // What begins a filter's terms becomes their end.
  for_each_value(band, [&](size_t pixel, size_t filter, float value) {
    const uint32_t term = ends_[filter]++;
    values_[term] = value;
    offsets_[term] = pixels[pixel];
  });
}

void SparseBackward::list_by_pixel(const Band& band) {
  std::fill_n(ends_.data(), band.end - band.first, 0u);
  uint32_t terms = 0;
  for_each_value(band, [&](size_t pixel, size_t filter, float value) {
    values_[terms] = value;
    offsets_[terms] = filters_[filter];
    ends_[pixel - band.first] = ++terms;
  });
  // Of a pixel without terms: those of the pixels before it.
  for (size_t i = 1; i < band.end - band.first; ++i) ends_[i] = std::max(ends_[i], ends_[i - 1]);
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
