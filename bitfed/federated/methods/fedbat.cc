// FedBAT (Li et al., "FedBAT: communication-efficient federated learning via learnable binarization", ICML
// 2024): clients learn an update of the server's weights that is sent as one bit per weight and one value per
// layer. Batch norm and biases are sent as floats; the model is real-valued.

#include <cmath>

#include "bitfed/base/error.h"
#include "bitfed/federated/arithmetic/binarised_update.h"
#include "bitfed/federated/expect_tensors.h"
#include "bitfed/federated/methods/methods.h"
#include "bitfed/federated/network/network_method.h"
#include "bitfed/nn/products/sign_bits.h"

namespace bitfed {
namespace {

std::string step_name(const ParameterShape& parameter) {
  return parameter.name + ".step";
}

class BinarisedTraining : public LocalTraining {
 public:
  explicit BinarisedTraining(const LocalContext& context) : context_(context), random_(context.random) {
    const ParameterShapes& shapes = context.trainer->shapes();
    const NetworkParameters parameters = context.trainer->parameters(context.client);
    for (size_t p = 0; p < shapes.size(); ++p) {
      if (is_product_weights(shapes[p]))
        layers_.push_back({p, parameters[p], BinarisedUpdate(shapes[p].count())});
    }
  }

  // The second half of the steps uses the update in its binarised form.
  void before_step() override {
    const bool first = !layers_.front().update.is_binary();
    if (2 * ++step_ <= context_.steps) return;
    for (Layer& layer : layers_) {
      if (first) layer.update.binarise();
      layer.update.draw(&random_);
      show(layer, [&](size_t i) { return layer.update.value(i); });
    }
  }

  void descend(const Descent& descent) override {
    context_.trainer->descend(context_.client, descent);  // the new weights are overwritten below
    for (Layer& layer : layers_) {
      context_.trainer->get_gradient(context_.client, layer.parameter, &values_);
      layer.update.descend(values_, descent.rate);
      show(layer, [&](size_t i) { return layer.update.update()[i]; });
    }
  }

  // Signs of a last draw, and alpha as the ".step" of each layer.
  State upload(const NetworkParameters& parameters) override {
    State state;
    size_t next = 0;
    const ParameterShapes& shapes = context_.trainer->shapes();
    for (size_t p = 0; p < shapes.size(); ++p) {
      if (!is_product_weights(shapes[p])) {
        add_parameter(shapes[p], parameters[p], &state);
        continue;
      }
      BinarisedUpdate& update = layers_[next++].update;
      update.draw(&random_);
      std::vector<float> signs(shapes[p].count());
      for (size_t i = 0; i < signs.size(); ++i) signs[i] = update.positive(i) ? 1.0f : -1.0f;
      const std::vector<uint8_t> bits = pack_signs(signs);
      state.add(shapes[p].name, {bits.size()}, bits);
      state.add_scalar(step_name(shapes[p]), update.alpha());
    }
    return state;
  }

 private:
  struct Layer {
    size_t parameter;
    std::vector<float> server;
    BinarisedUpdate update;
  };

  // Sets the network's weights to server + update.
  template <typename Update>
  void show(const Layer& layer, const Update& update) {
    values_.resize(layer.server.size());
    for (size_t i = 0; i < values_.size(); ++i) values_[i] = layer.server[i] + update(i);
    context_.trainer->set_values(context_.client, layer.parameter, values_);
  }

  LocalContext context_;
  size_t step_ = 0;
  RandomStream random_;
  std::vector<Layer> layers_;
  std::vector<float> values_;
};

// The client's parameters: broadcast ± step for binarised layers, as sent for the others.
NetworkParameters read_upload(const ParameterShapes& shapes, const NetworkParameters& broadcast,
                              const State& upload) {
  NetworkParameters parameters;
  size_t tensors = 1 + shapes.size();  // samples and one per parameter, and the steps
  for (size_t p = 0; p < shapes.size(); ++p) {
    const ParameterShape& shape = shapes[p];
    if (!is_product_weights(shape)) {
      parameters.push_back(read_parameter(shape, upload));
      continue;
    }
    const auto step = upload.scalar<float>(step_name(shape));
    if (!(step >= BinarisedUpdate::kMinAlpha && step <= BinarisedUpdate::kMaxAlpha)) {
      throw input_error("{}: tensor '{}': found {}, expected {} to {}", upload.source(), step_name(shape),
                        step, BinarisedUpdate::kMinAlpha, BinarisedUpdate::kMaxAlpha);
    }
    const auto bits = upload.values<uint8_t>(shape.name, {(shape.count() + 7) / 8});
    std::vector<float> values = unpack_signs(bits, shape.count(), shape.name);
    for (size_t i = 0; i < values.size(); ++i) values[i] = broadcast[p][i] + values[i] * step;
    parameters.push_back(std::move(values));
    ++tensors;
  }
  expect_tensors(upload, tensors);
  return parameters;
}

NetworkTraining training_of(const MethodContext& context) {
  NetworkTraining training = real_network_training(context);
  training.key = "fedbat";
  training.train = [](const LocalContext& local) { return std::make_unique<BinarisedTraining>(local); };
  training.read_upload = read_upload;
  training.plain_steps = true;
  return training;
}

}  // namespace

std::unique_ptr<ClientHalf> make_fedbat_client(const MethodContext& context) {
  return make_network_client(context, training_of(context));
}

std::unique_ptr<Method> make_fedbat(const MethodContext& context) {
  NetworkMethod method = real_network_method(training_of(context));
  method.initialise = initialise_small;
  return make_network_method(context, std::move(method));
}

}  // namespace bitfed
