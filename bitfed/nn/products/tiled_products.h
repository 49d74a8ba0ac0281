#pragma once

#include <vector>

#include "bitfed/nn/kernels/tile_kernels.h"
#include "bitfed/nn/products/sign_products.h"

namespace bitfed {

// Products in tiles of bytes, see tile_kernels.h. The few pixels of a small image would not fill tiles:
// several images lie next to each other on a sheet, which the kernels see as one image. One column between
// two images of a sheet, and between a row's last image and the next row's first, is the border of both.
class TiledProducts : public SignProducts {
 public:
  TiledProducts(const TileKernels& kernels, size_t batch, const ImageShape& input, const ImageShape& output,
                const ConvolutionKernel& kernel);

  // Kernels of 3 x 3 and 1 x 1, strides 1 and 2, "same" padding, behind a border of one.
  static bool supports(const ImageShape& input, const ConvolutionKernel& kernel) {
    return kernel.side <= 3 && kernel.stride <= 2 && !kernel.valid && input.border == 1;
  }

  void take_weights(const Matrix& signs) override;
  void backward(const Images& gradient, const Images& input, size_t images, float factor, Matrix* of_weights,
                Images* of_input, bool adds) override;

 private:
  // A part of the input's gradient, see ConvolutionPhase.
  struct Phase {
    ConvolutionPhase geometry;
    std::vector<size_t> shifts;     // of its taps, in bytes
    size_t first;                   // offset of the first pixel's patch in a sheet's gradient
    size_t weights;                 // offset of its weights
    std::vector<uint32_t> offsets;  // of every position's pixel in a sheet's input gradient, or kNoPixel
  };

  size_t add_phase(const ConvolutionPhase& geometry, size_t weights);
  std::vector<uint32_t> plane_offsets(size_t y, size_t x) const;
  void pack_weights(const Phase& phase, const Matrix& signs);
  void plan_chunks(size_t batch);
  size_t sheet_position(size_t image, size_t y, size_t x) const;
  size_t quads_of(size_t images) const;  // of sheets
  // The images of a chunk.
  struct Range {
    size_t first, count;
  };
  const float* gradient_sheet(const Images& gradient, const Range& range, size_t sheet);
  const uint32_t* sign_sheet(const Images& input, const Range& range, size_t sheet);
  void take_gradient(const Images& gradient, const Range& range, float factor);
  void take_input(const Images& input, const Range& range);
  void add_weight_gradient(const Range& range, size_t images, float factor, Matrix* gradient);
  void phase_gradient(const Phase& phase, const Range& range, float factor, bool adds, Images* gradient);

  const TileKernels& kernels_;
  ImageShape input_, output_;
  ConvolutionKernel kernel_;
  size_t sheet_images_;
  size_t pitch_;         // positions of a row of a sheet: each image's with one column of its border
  size_t channels_;      // of the input, padded to two tiles
  size_t filter_bytes_;  // padded to tiles
  size_t positions_;     // of a sheet's output, padded to tiles
  size_t row_bytes_;     // of a filter of four sheets' gradients
  size_t block_bytes_;   // of 64 filters of a gradient with its border
  size_t sheet_bytes_;
  size_t sign_block_bytes_;        // of 16 channels of a plane, four sheets'
  std::vector<uint32_t> offsets_;  // of every position's pixel in a sheet's gradient, or kNoPixel
  // A plane is the input's pixels y, y + stride … of x, x + stride …, which a tap meets in sequence: the
  // offset of every position's pixel.
  std::vector<std::vector<uint32_t>> planes_;
  std::vector<size_t> shifts_;  // from the signs of a quad of sheets to the first that a tap meets
  std::vector<Phase> phases_;
  size_t chunk_quads_;  // quads of sheets whose intermediate values fit the second-level cache
  Aligned<int8_t> weights_;
  // Of a chunk.
  Aligned<int8_t> high_;  // [sheet][64 filters][position with the border][filter]
  Aligned<uint8_t> low_;
  Aligned<int8_t> quads_high_;  // [four sheets][filter][position][sheet]
  Aligned<uint8_t> quads_low_;
  Aligned<int8_t> signs_;  // [four sheets][plane][16 channels][position][channel][sheet]
  Aligned<int32_t> sums_;
  Floats no_gradient_;    // a sheet without images
  Floats last_gradient_;  // the last sheet, where images are missing
  Images last_signs_;
};

}  // namespace bitfed
