#include "bitfed/nn/products/sign_products.h"

#include "bitfed/nn/products/paired_products.h"
#include "bitfed/nn/products/tiled_products.h"

namespace bitfed {

std::unique_ptr<SignProducts> make_sign_products(size_t batch, const ImageShape& input,
                                                 const ImageShape& output, const ConvolutionKernel& kernel) {
  if (const TileKernels* kernels = tile_kernels())
    return std::make_unique<TiledProducts>(*kernels, batch, input, output, kernel);
  return std::make_unique<PairedProducts>(batch, input, output, kernel);
}

}  // namespace bitfed
