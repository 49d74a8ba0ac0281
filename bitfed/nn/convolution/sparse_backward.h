#pragma once

#include <vector>

#include "bitfed/nn/convolution/convolution_geometry.h"

namespace bitfed {

// The backward pass of a convolution whose output's gradient is mostly 0, as it is behind a max pool: of four
// pixels one gets a gradient. The sums have the bits of those over all values.
class SparseBackward {
 public:
  // The input's channels are padded to kLanes.
  SparseBackward(const ImageShape& input, const ImageShape& output, const ConvolutionKernel& kernel);

  // The gradient of the first images, which must stay as it is until both products are done. False: too many
  // of its values are not 0.
  bool take(const Images& gradient, size_t images);

  // `pixels`: see patch_offsets.
  void weights_gradient(const Images& input, const std::vector<uint32_t>& pixels, Matrix* gradient);
  // `adds`: the sums begin with what *gradient holds.
  void input_gradient(const Matrix& weights, const std::vector<uint32_t>& pixels, bool adds,
                      Images* gradient);

 private:
  // Pixels of the output that are next to each other in one image.
  struct Band {
    size_t image;
    size_t first, end;  // of the image's
  };
  template <typename Work>
  void for_each_band(size_t image, const Work& work);
  const float* gradient_of(const Band& band) const;
  void list_by_filter(const Band& band, const std::vector<uint32_t>& pixels);
  void list_by_pixel(const Band& band);

  ImageShape input_, output_;
  size_t side_;
  size_t band_pixels_;
  const Images* gradient_ = nullptr;
  size_t images_ = 0;
  std::vector<uint32_t> filters_;  // where each filter begins in by_filter_
  Floats by_filter_;               // the weights, or their gradient, transposed
  Images bordered_;                // the input's gradient of one image, with the input's border
  Floats band_;                    // the gradient of a band, transposed
  // Of a band: see SparseProduct and NonzeroLists.
  std::vector<float> values_;
  std::vector<uint32_t> offsets_;
  std::vector<uint32_t> ends_;
};

}  // namespace bitfed
