#include "bitfed/nn/products/sign_products.h"

#include "bitfed/nn/products/paired_products.h"
#include "bitfed/nn/products/tiled_products.h"

namespace bitfed {

std::unique_ptr<SignProducts> make_sign_products(size_t batch, const ImageShape& input,
                                                 const ImageShape& output, const ConvolutionKernel& kernel) {
  const TileKernels* tiles = tile_kernels();
  if (tiles != nullptr && TiledProducts::supports(input, kernel))
    return std::make_unique<TiledProducts>(*tiles, batch, input, output, kernel);
  return std::make_unique<PairedProducts>(batch, input, output, kernel);
}

}  // namespace bitfed
