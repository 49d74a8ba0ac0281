#include "bitfed/zoo/network/network_builder.h"

#include <memory>
#include <optional>

#include "bitfed/nn/binary/binary_convolution.h"
#include "bitfed/nn/binary/sign_activation.h"
#include "bitfed/nn/convolution/convolution.h"
#include "bitfed/nn/layers/activation_layer.h"
#include "bitfed/nn/layers/average_pool.h"
#include "bitfed/nn/layers/biased_activation.h"
#include "bitfed/nn/layers/biased_pool.h"
#include "bitfed/nn/layers/border.h"
#include "bitfed/nn/layers/dense.h"
#include "bitfed/nn/layers/dropout.h"
#include "bitfed/nn/layers/load_pixels.h"
#include "bitfed/nn/layers/max_pool.h"
#include "bitfed/nn/layers/residual_block.h"
#include "bitfed/nn/norm/batch_norm.h"
#include "bitfed/nn/norm/pooled_norm.h"

namespace bitfed {
namespace {

using Records = std::span<const LayerRecord>;

bool is(Records records, LayerKind kind) {
  return !records.empty() && records[0].kind == kind;
}

ImageShape lanes_of(const LayerShape& shape) {
  return padded_shape(shape.height, shape.width, shape.channels, 0);
}

// The padding that the next layer reads beyond an image of floats.
size_t padding_of_next(Records records) {
  return is(records, LayerKind::kConvolution) && !records[0].sign_inputs ? records[0].kernel.padding() : 0;
}

// Walks the records and makes one layer of one record, or of several where a fused layer is faster.
class Builder {
 public:
  // `rotated`: null for the network as it is deployed.
  Builder(size_t batch, const RotatedOptions* rotated) : batch_(batch), rotated_(rotated) {}

  void add_all(Records records, ImageShape shape, Sequence* layers) const {
    while (!records.empty()) records = add(records, &shape, layers);
  }

 private:
  // Makes the next layer; returns the records behind it.
  Records add(Records records, ImageShape* shape, Sequence* layers) const {
    const LayerRecord& record = records[0];
    Records rest = records.subspan(1);
    const ImageShape in = *shape;
    switch (record.kind) {
      case LayerKind::kSigns:
        *shape = in.with_border(rest[0].kernel.padding());
        layers->add(signs(record, in, shape->border));
        return rest;
      case LayerKind::kConvolution:
        if (in.border < record.kernel.padding()) {
          *shape = in.with_border(record.kernel.padding());
          layers->add(std::make_unique<Border>(batch_, in, shape->border));
        }
        layers->add(convolution(record, *shape));
        *shape = lanes_of(record.out);
        return is(rest, LayerKind::kBias) ? add_bias(record, rest, shape, layers) : rest;
      case LayerKind::kBias:
        break;  // made with the layer that it belongs to
      case LayerKind::kNorm:
        return add_norm(record, rest, shape, layers);
      case LayerKind::kActivation:
        layers->add(std::make_unique<ActivationLayer>(batch_, in, record.activation));
        return rest;
      case LayerKind::kMaxPool:
        layers->add(std::make_unique<MaxPool>(batch_, in, record.window));
        break;
      case LayerKind::kAveragePool:
        layers->add(std::make_unique<AveragePool>(batch_, in, record.window));
        break;
      case LayerKind::kDropout:
        layers->add(std::make_unique<Dropout>(batch_, in, record.rate));
        return rest;
      case LayerKind::kDense: {
        const Bias bias = is(rest, LayerKind::kBias) ? Bias::kLearned : Bias::kNone;
        layers->add(std::make_unique<Dense>(batch_, in, record.out.channels, record.name, bias));
        if (bias == Bias::kLearned) rest = rest.subspan(1);
        break;
      }
      case LayerKind::kResidual:
        layers->add(residual(record, in, take_activation(&rest)));
        break;
    }
    *shape = lanes_of(record.out);
    return rest;
  }

  static Activation take_activation(Records* rest) {
    if (!is(*rest, LayerKind::kActivation)) return Activation::kNone;
    const Activation activation = (*rest)[0].activation;
    *rest = rest->subspan(1);
    return activation;
  }

  // The bias of a convolution, the activation behind it, and a 2 x 2 pool behind that.
  Records add_bias(const LayerRecord& convolution, Records rest, ImageShape* shape, Sequence* layers) const {
    const ImageShape in = *shape;
    const size_t fan_in = convolution.kernel.taps() * convolution.in.channels;
    rest = rest.subspan(1);
    const Activation activation = take_activation(&rest);
    if (is(rest, LayerKind::kMaxPool) && rest[0].window == 2) {
      *shape = lanes_of(rest[0].out);
      layers->add(std::make_unique<BiasedPool>(batch_, in, activation, convolution.name, fan_in), 2);
      return rest.subspan(1);
    }
    shape->border = padding_of_next(rest);
    layers->add(
        std::make_unique<BiasedActivation>(batch_, in, activation, convolution.name, fan_in, shape->border));
    return rest;
  }

  // Batch norm, activation and a 2 x 2 pool are one pass over the images.
  Records add_norm(const LayerRecord& record, Records rest, ImageShape* shape, Sequence* layers) const {
    const ImageShape in = *shape;
    const Activation activation = take_activation(&rest);
    const bool pools =
        activation != Activation::kNone && is(rest, LayerKind::kMaxPool) && rest[0].window == 2;
    if (!pools) {
      layers->add(std::make_unique<BatchNorm>(batch_, in, activation, record.name));
      return rest;
    }
    *shape = lanes_of(rest[0].out);
    rest = rest.subspan(1);
    shape->border = padding_of_next(rest);
    layers->add(std::make_unique<PooledNorm>(batch_, in, activation, shape->border, record.name));
    return rest;
  }

  std::unique_ptr<SignActivation> signs(const LayerRecord& record, const ImageShape& in,
                                        size_t border) const {
    const SignForm form = rotated_ == nullptr ? SignForm::kFloats : SignForm::kBits;
    if (record.mean == SignMean::kImage) return std::make_unique<SignActivation>(batch_, in, form, border);
    return std::make_unique<SignActivation>(batch_, in, form, record.name, border);
  }

  std::unique_ptr<AddingLayer> convolution(const LayerRecord& record, const ImageShape& in) const {
    const size_t channels = record.out.channels;
    if (rotated_ == nullptr || !record.sign_weights)
      return std::make_unique<Convolution>(batch_, in, channels, record.name, record.kernel);
    if (record.sign_inputs)
      return std::make_unique<BinaryConvolution>(batch_, in, channels, *rotated_, record.name, record.kernel);
    return std::make_unique<BinaryWeightConvolution>(batch_, in, channels, *rotated_, record.name,
                                                     record.kernel);
  }

  // The signs of its input, or the border about it, serve path and shortcut alike.
  std::unique_ptr<Layer> residual(const LayerRecord& record, const ImageShape& in,
                                  Activation activation) const {
    Records path = record.path;
    std::unique_ptr<AddingLayer> entry;
    ImageShape inner;
    if (is(path, LayerKind::kSigns)) {
      inner = in.with_border(path[1].kernel.padding());
      entry = signs(path[0], in, inner.border);
      path = path.subspan(1);
    } else {
      inner = in.with_border(padding_of_next(path));
      entry = std::make_unique<Border>(batch_, in, inner.border);
    }
    Sequence layers;
    add_all(path, inner, &layers);
    std::optional<AddingSequence> shortcut;
    if (!record.shortcut.empty()) {
      const LayerRecord& first = record.shortcut[0];
      shortcut.emplace(convolution(first, inner));
      add_all(Records(record.shortcut).subspan(1), lanes_of(first.out), &*shortcut);
    }
    return std::make_unique<ResidualBlock>(batch_, lanes_of(record.out), activation, std::move(entry),
                                           std::move(layers), std::move(shortcut));
  }

  size_t batch_;
  const RotatedOptions* rotated_;
};

Network build(const NetworkSpec& spec, const RotatedOptions* rotated, size_t batch,
              const RandomStream& random) {
  const Architecture architecture = architecture_of(spec);
  const LayerShape& in = architecture.input;
  const LayerRecord& first = architecture.layers[0];
  // Convolutions and dense layers take pixels as they are; other layers need channels padded to kLanes.
  const bool takes_pixels = first.kind == LayerKind::kConvolution || first.kind == LayerKind::kDense;
  const size_t border = first.kind == LayerKind::kConvolution ? first.kernel.padding() : 0;
  const ImageShape input = takes_pixels ? ImageShape{in.height, in.width, in.channels, border} : lanes_of(in);
  Network network(batch, input, spec.classes);
  Builder(batch, rotated).add_all(architecture.layers, input, &network.layers());
  network.initialise(random);
  return network;
}

}  // namespace

Network make_network(const NetworkSpec& spec, size_t batch, const RandomStream& random) {
  return build(spec, nullptr, batch, random);
}

Network make_rotated_network(const NetworkSpec& spec, const RotatedOptions& options, size_t batch,
                             const RandomStream& random) {
  return build(spec, &options, batch, random);
}

std::vector<float> input_table(const NetworkSpec& spec) {
  std::vector<float> inputs;
  for (size_t c = 0; c < spec.channels; ++c) {
    for (int pixel = 0; pixel < 256; ++pixel)
      inputs.push_back(input_of(spec, static_cast<uint8_t>(pixel), c));
  }
  return inputs;
}

void load_image(const NetworkSpec& spec, std::span<const uint8_t> pixels, size_t index, Network* network) {
  load_pixels(input_table(spec), pixels, index, &network->input());
}

}  // namespace bitfed
