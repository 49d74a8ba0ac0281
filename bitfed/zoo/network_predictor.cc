#include "bitfed/zoo/network_predictor.h"

#include <algorithm>

namespace bitfed {
namespace {

constexpr size_t kMostBatch = 64;
constexpr size_t kMostFloats = size_t{1} << 21;  // of a layer: a small file may claim large images

size_t batch_of(const NetworkSpec& spec) {
  const size_t floats = size_t{spec.height} * spec.image_width * padded(spec.width);
  return std::clamp<size_t>(kMostFloats / floats, 1, kMostBatch);
}

SampleShape image_shape(const NetworkSpec& spec) {
  return {.height = spec.height, .width = spec.image_width, .channels = spec.channels};
}

class PackedPredictor : public Predictor {
 public:
  PackedPredictor(const SampleShape& shape, size_t classes, std::shared_ptr<const PackedNetwork> network)
      : Predictor(shape, classes, 1), network_(std::move(network)), workspace_(network_->make_workspace()) {}

  std::unique_ptr<Predictor> another() const override {
    return std::make_unique<PackedPredictor>(shape(), class_count(), network_);
  }

 private:
  void predict_block(const Samples& samples, float* scores) override {
    network_->predict(samples.pixels, &workspace_, scores);
  }

  std::shared_ptr<const PackedNetwork> network_;
  PackedNetwork::Workspace workspace_;
};

class LayersPredictor : public Predictor {
 public:
  struct Numbers {
    NetworkSpec spec;
    NetworkParameters parameters;
  };

  explicit LayersPredictor(std::shared_ptr<const Numbers> numbers)
      : Predictor(image_shape(numbers->spec), numbers->spec.classes, batch_of(numbers->spec)),
        numbers_(std::move(numbers)),
        network_(make_network(numbers_->spec, block(), RandomStream({.purpose = "prediction"}))) {
    assign_parameters(numbers_->parameters, &network_);
  }

  std::unique_ptr<Predictor> another() const override { return std::make_unique<LayersPredictor>(numbers_); }

 private:
  void predict_block(const Samples& samples, float* scores) override {
    const size_t bytes = shape().count();
    for (size_t i = 0; i < samples.count; ++i)
      load_image(numbers_->spec, {samples.pixels + i * bytes, bytes}, i, &network_);
    network_.predict(samples.count);
    for (size_t i = 0; i < samples.count; ++i)
      std::copy_n(network_.logits(i), class_count(), scores + i * class_count());
  }

  std::shared_ptr<const Numbers> numbers_;
  Network network_;
};

}  // namespace

std::unique_ptr<Predictor> make_packed_predictor(const NetworkSpec& spec,
                                                 std::shared_ptr<const PackedNetwork> network) {
  return std::make_unique<PackedPredictor>(image_shape(spec), spec.classes, std::move(network));
}

std::unique_ptr<Predictor> make_layers_predictor(const NetworkSpec& spec,
                                                 const NetworkParameters& parameters) {
  return std::make_unique<LayersPredictor>(
      std::make_shared<const LayersPredictor::Numbers>(LayersPredictor::Numbers{spec, parameters}));
}

}  // namespace bitfed
