// FedBAT (Li et al., "FedBAT: communication-efficient federated learning via learnable binarization", ICML
// 2024): clients learn an update of the server's weights that is sent as one bit a weight and one number a
// layer. Batch norm and biases are sent as they are; the model is real.

#include <cmath>

#include "bitfed/base/error.h"
#include "bitfed/federated/arithmetic/binarised_update.h"
#include "bitfed/federated/methods/methods.h"
#include "bitfed/federated/network/network_method.h"
#include "bitfed/nn/products/sign_bits.h"

namespace bitfed {
namespace {

std::string step_name(const Parameter& parameter) {
  return parameter.name + ".step";
}

class BinarisedTraining : public LocalTraining {
 public:
  explicit BinarisedTraining(const LocalContext& context)
      : network_(*context.network), steps_(context.steps), random_(context.random) {
    for (Parameter* parameter : network_.parameters()) {
      if (!is_product_weights(*parameter)) continue;
      layers_.push_back({parameter, parameter->numbers(), BinarisedUpdate(parameter->count())});
    }
  }

  // The second half of the steps takes the update as it will be sent.
  void before_step() override {
    const bool first = !layers_.front().update.is_binary();
    if (2 * ++step_ <= steps_) return;
    for (Layer& layer : layers_) {
      if (first) layer.update.binarise();
      layer.update.draw(&random_);
      show(&layer, [&](size_t i) { return layer.update.value(i); });
    }
  }

  void descend(float rate) override {
    network_.descend(rate);  // of the weights' values nothing is kept
    for (Layer& layer : layers_) {
      layer.parameter->gradient_numbers(&numbers_);
      layer.update.descend(numbers_, rate);
      show(&layer, [&](size_t i) { return layer.update.update()[i]; });
    }
  }

  State upload() override {
    State state;
    size_t next = 0;
    for (Parameter* parameter : network_.parameters()) {
      if (!is_product_weights(*parameter)) {
        add_parameters({parameter}, {parameter->numbers()}, &state);
        continue;
      }
      BinarisedUpdate& update = layers_[next++].update;
      update.draw(&random_);
      std::vector<float> signs(parameter->count());
      for (size_t i = 0; i < signs.size(); ++i) signs[i] = update.positive(i) ? 1.0f : -1.0f;
      const std::vector<uint8_t> bits = pack_signs(signs);
      state.add(parameter->name, {bits.size()}, bits);
      state.add_scalar(step_name(*parameter), update.alpha());
    }
    return state;
  }

 private:
  struct Layer {
    Parameter* parameter;
    std::vector<float> server;
    BinarisedUpdate update;
  };

  // The network's weights become the server's and the update on top.
  template <typename Update>
  void show(Layer* layer, const Update& update) {
    numbers_.resize(layer->server.size());
    for (size_t i = 0; i < numbers_.size(); ++i) numbers_[i] = layer->server[i] + update(i);
    layer->parameter->assign(numbers_);
  }

  Network& network_;
  size_t steps_;
  size_t step_ = 0;
  RandomStream random_;
  std::vector<Layer> layers_;
  std::vector<float> numbers_;
};

NetworkParameters read_upload(const ParameterShapes& shapes, const NetworkParameters& broadcast,
                              const State& upload) {
  NetworkParameters parameters;
  for (size_t p = 0; p < shapes.size(); ++p) {
    const Parameter& shape = *shapes[p];
    if (!is_product_weights(shape)) {
      parameters.push_back(read_parameters({shapes[p]}, upload)[0]);
      continue;
    }
    const auto step = upload.scalar<float>(step_name(shape));
    if (!(step >= BinarisedUpdate::kLeast && step <= BinarisedUpdate::kMost)) {
      throw input_error("{}: tensor '{}': found {}, expected {} to {}", upload.source(), step_name(shape),
                        step, BinarisedUpdate::kLeast, BinarisedUpdate::kMost);
    }
    const auto bits = upload.values<uint8_t>(shape.name, {(shape.count() + 7) / 8});
    std::vector<float> numbers = unpack_signs(bits, shape.count(), shape.name);
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = broadcast[p][i] + numbers[i] * step;
    parameters.push_back(std::move(numbers));
  }
  return parameters;
}

}  // namespace

std::unique_ptr<Method> make_fedbat(const MethodContext& context) {
  NetworkMethod method = real_network_method(context);
  method.key = "fedbat";
  method.make = [make = method.make](size_t batch, const RandomStream& random) {
    Network network = make(batch, random);
    start_small(random, &network);
    return network;
  };
  method.train = [](const LocalContext& local) { return std::make_unique<BinarisedTraining>(local); };
  method.read_upload = read_upload;
  return make_network_method(context, std::move(method));
}

}  // namespace bitfed
