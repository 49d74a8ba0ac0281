#include "bitfed/zoo/packed_numbers.h"

#include "bitfed/nn/sign_bits.h"

namespace bitfed {
namespace {

// Takes tensors one after the other.
class Reader {
 public:
  explicit Reader(const NetworkNumbers& numbers) : numbers_(numbers) {}

  const std::vector<float>& reals() { return numbers_.reals[next_++]; }
  const std::vector<uint8_t>& signs() { return numbers_.signs[next_++]; }
  FoldedNorm norm() {
    const size_t first = next_;
    next_ += 4;
    return fold_norm(numbers_.reals[first], numbers_.reals[first + 1], numbers_.reals[first + 2],
                     numbers_.reals[first + 3]);
  }
  PackedConvolution::Numbers convolution(const NetworkProduct& product) {
    const std::vector<uint8_t>& its_signs = signs();
    return {its_signs, norm(), product.kernel};
  }

 private:
  const NetworkNumbers& numbers_;
  size_t next_ = 0;
};

void add_residual(const NetworkProduct& product, PackedConvolution::Numbers convolution,
                  std::vector<PackedNetwork::Residual>* blocks) {
  if (product.weights.find(".first.") != std::string::npos) {
    blocks->push_back({std::move(convolution), {}, {}});
  } else if (product.weights.find(".second.") != std::string::npos) {
    blocks->back().second = std::move(convolution);
  } else {
    blocks->back().shortcut = std::move(convolution);
  }
}

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
  Reader reader(numbers);
  const std::vector<NetworkProduct> products = network_products(spec);
  const NetworkProduct& stem = products.front();
  packed.stem = stem.sign_weights ? unpack_signs(reader.signs(), stem.inputs * stem.outputs, stem.weights)
                                  : reader.reals();
  packed.stem_norm = reader.norm();
  for (size_t i = 1; i + 1 < products.size(); ++i) {
    PackedConvolution::Numbers convolution = reader.convolution(products[i]);
    if (spec.is_residual()) {
      add_residual(products[i], std::move(convolution), &packed.residual);
    } else {
      packed.pooled.push_back(std::move(convolution));
    }
  }
  if (spec.is_residual()) packed.norm = reader.norm();
  packed.dense = reader.reals();
  if (spec.is_residual()) packed.bias = reader.reals();
  return packed;
}

}  // namespace bitfed
