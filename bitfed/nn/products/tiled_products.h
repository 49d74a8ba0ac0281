#pragma once

#include <vector>

#include "bitfed/nn/products/sign_products.h"
#include "bitfed/nn/kernels/tile_kernels.h"

namespace bitfed {

// By tiles of bytes: see tile_kernels.h. Images lie side by side on sheets, few pixels of one do not fill
// tiles: a sheet takes the place of an image there. Between two of its images, and between a row's last image
// and the next row's first, one column is the border of both.
class TiledProducts : public SignProducts {
 public:
  TiledProducts(const TileKernels& kernels, size_t batch, const ImageShape& input, const ImageShape& output,
                const ConvolutionKernel& kernel);

  void take_weights(const Matrix& signs) override;
  void go_back(const Images& gradient, const Images& input, size_t images, float factor, Matrix* of_weights,
               Images* of_input, bool adds) override;

 private:
  // A phase of the way back to the input: see ConvolutionPhase.
  struct Phase {
    ConvolutionPhase geometry;
    std::vector<size_t> shifts;    // of its taps, in bytes
    size_t first;                  // where the patch of the first pixel begins in a sheet's gradient
    size_t weights;                // where they begin
    std::vector<uint32_t> places;  // of the positions' pixels in a sheet's input gradient, or none
  };

  size_t add_phase(const ConvolutionPhase& geometry, size_t weights);
  std::vector<uint32_t> plane_places(size_t y, size_t x) const;
  void pack_weights(const Phase& phase, const Matrix& signs);
  void plan_chunks(size_t batch);
  size_t sheet_position(size_t image, size_t y, size_t x) const;
  size_t quads_of(size_t images) const;  // of sheets
  // Of some of a batch's images, from the first on, which are a chunk's.
  struct Some {
    size_t first, count;
  };
  const float* gradient_sheet(const Images& gradient, const Some& some, size_t sheet);
  const uint32_t* sign_sheet(const Images& input, const Some& some, size_t sheet);
  void take_gradient(const Images& gradient, const Some& some, float factor);
  void take_input(const Images& input, const Some& some);
  void add_weight_gradient(const Some& some, size_t images, float factor, Matrix* gradient);
  void phase_gradient(const Phase& phase, const Some& some, float factor, bool adds, Images* gradient);

  const TileKernels& kernels_;
  ImageShape input_, output_;
  ConvolutionKernel kernel_;
  size_t sheet_images_;
  size_t pitch_;         // positions of a row of a sheet, an image's with one column of its border
  size_t channels_;      // of the input, in blocks of two tiles
  size_t filter_bytes_;  // in whole tiles
  size_t positions_;     // of a sheet's output, in whole tiles
  size_t row_bytes_;     // of a filter of four sheets' gradients
  size_t block_bytes_;   // of 64 filters of a gradient with its border
  size_t sheet_bytes_;
  size_t sign_block_bytes_;       // of 16 channels of a plane, four sheets'
  std::vector<uint32_t> places_;  // of the positions' pixels in a sheet's gradient
  // The input's pixels y, y + stride … of x, x + stride …, which a tap of the kernel meets one after the
  // other: where those of a plane's positions lie.
  std::vector<std::vector<uint32_t>> planes_;
  std::vector<size_t> shifts_;  // from the signs of a quad of sheets to those that a tap meets
  std::vector<Phase> phases_;
  size_t chunk_quads_;  // what is made of so many quads of sheets stays in the second-level cache
  Aligned<int8_t> weights_;
  // Of a chunk.
  Aligned<int8_t> high_;  // by sheet, 64 filters, position with the border, filter
  Aligned<uint8_t> low_;
  Aligned<int8_t> quads_high_;  // by four sheets, filter, position, sheet
  Aligned<uint8_t> quads_low_;
  Aligned<int8_t> signs_;  // by four sheets, plane, 16 channels, position, channel, sheet
  Aligned<int32_t> sums_;
  Floats no_gradient_;    // a sheet without images
  Floats last_gradient_;  // the last sheet, where images are missing
  Images last_signs_;
};

}  // namespace bitfed
