#include "bitfed/zoo/packed_numbers.h"

#include "bitfed/nn/products/sign_bits.h"
#include "bitfed/zoo/resnet.h"

namespace bitfed {
namespace {

// Takes tensors one after the other.
class Reader {
 public:
  Reader(const NetworkSpec& spec, const NetworkNumbers& numbers) : spec_(spec), numbers_(numbers) {}

  const std::vector<float>& reals() { return numbers_.reals[next_++]; }
  const std::vector<uint8_t>& signs() { return numbers_.signs[next_++]; }
  FoldedNorm norm() {
    const size_t first = next_;
    next_ += 4;
    return fold_norm(numbers_.reals[first], numbers_.reals[first + 1], numbers_.reals[first + 2],
                     numbers_.reals[first + 3]);
  }
  // `takes_signs`: of values; a shortcut has those of the convolution beside it.
  PackedConvolution::Numbers convolution(const ConvolutionKernel& kernel, bool takes_signs = true) {
    PackedConvolution::Numbers convolution;
    convolution.kernel = kernel;
    if (takes_signs && spec_.static_signs) convolution.mean = reals()[0];
    convolution.signs = signs();
    convolution.norm = norm();
    return convolution;
  }

 private:
  const NetworkSpec& spec_;
  const NetworkNumbers& numbers_;
  size_t next_ = 0;
};

}  // namespace

PackedNetwork::Numbers packed_numbers(const NetworkSpec& spec, const NetworkNumbers& numbers) {
  PackedNetwork::Numbers packed;
  packed.height = spec.height;
  packed.width = spec.image_width;
  packed.channels = spec.channels;
  packed.classes = spec.classes;
  for (size_t c = 0; c < spec.channels; ++c) {
    for (int pixel = 0; pixel < 256; ++pixel)
      packed.inputs.push_back(input_of(spec, static_cast<uint8_t>(pixel), c));
  }
  Reader reader(spec, numbers);
  const NetworkProduct stem = network_products(spec).front();
  packed.stem = stem.sign_weights ? unpack_signs(reader.signs(), stem.inputs * stem.outputs, stem.weights)
                                  : reader.reals();
  packed.stem_norm = reader.norm();
  if (spec.is_residual()) {
    for (const ResnetBlock& block : resnet_blocks(spec)) {
      PackedNetwork::Residual& residual = packed.residual.emplace_back();
      residual.first = reader.convolution({3, block.stride});
      residual.second = reader.convolution({});
      if (block.has_shortcut()) residual.shortcut = reader.convolution({1, block.stride}, false);
    }
    packed.norm = reader.norm();
  } else {
    for (size_t block = 1; block < kCnn4Blocks; ++block) packed.pooled.push_back(reader.convolution({}));
  }
  packed.dense = reader.reals();
  if (spec.is_residual()) packed.bias = reader.reals();
  return packed;
}

}  // namespace bitfed
