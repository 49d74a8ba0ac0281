#include "bitfed/zoo/network/network_predictor.h"

#include <algorithm>

#include "bitfed/nn/layers/load_pixels.h"

namespace bitfed {
namespace {

constexpr size_t kMaxBatch = 64;
constexpr size_t kMaxFloats = size_t{1} << 21;  // of a layer: a small file may claim large images

size_t batch_of(const NetworkSpec& spec) {
  size_t floats = 1;
  for_each_record(architecture_of(spec).layers, [&](const LayerRecord& record) {
    floats = std::max<size_t>(floats, record.out.pixels() * padded(record.out.channels));
  });
  return std::clamp<size_t>(kMaxFloats / floats, 1, kMaxBatch);
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
  PackedWorkspace workspace_;
};

class LayersPredictor : public Predictor {
 public:
  struct Trained {
    NetworkSpec spec;
    NetworkParameters parameters;
    std::vector<float> inputs;  // see input_table
  };

  explicit LayersPredictor(std::shared_ptr<const Trained> trained)
      : Predictor(image_shape(trained->spec), trained->spec.classes, batch_of(trained->spec)),
        trained_(std::move(trained)),
        network_(make_network(trained_->spec, block(), RandomStream({.purpose = "prediction"}))) {
    assign_parameters(trained_->parameters, &network_);
  }

  std::unique_ptr<Predictor> another() const override { return std::make_unique<LayersPredictor>(trained_); }

 private:
  void predict_block(const Samples& samples, float* scores) override {
    const size_t bytes = shape().count();
    for (size_t i = 0; i < samples.count; ++i)
      load_pixels(trained_->inputs, {samples.pixels + i * bytes, bytes}, i, &network_.input());
    network_.predict(samples.count);
    for (size_t i = 0; i < samples.count; ++i)
      std::copy_n(network_.logits(i), class_count(), scores + i * class_count());
  }

  std::shared_ptr<const Trained> trained_;
  Network network_;
};

}  // namespace

std::unique_ptr<Predictor> make_packed_predictor(const NetworkSpec& spec,
                                                 std::shared_ptr<const PackedNetwork> network) {
  return std::make_unique<PackedPredictor>(image_shape(spec), spec.classes, std::move(network));
}

std::unique_ptr<Predictor> make_layers_predictor(const NetworkSpec& spec,
                                                 const NetworkParameters& parameters) {
  return std::make_unique<LayersPredictor>(std::make_shared<const LayersPredictor::Trained>(
      LayersPredictor::Trained{spec, parameters, input_table(spec)}));
}

}  // namespace bitfed
