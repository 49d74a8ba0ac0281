#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "bitfed/model/model.h"
#include "bitfed/zoo/packed_numbers.h"

namespace bitfed {

// The numbers of a network's parameters, in their order; rows without padding.
using NetworkParameters = std::vector<std::vector<float>>;

NetworkParameters parameters_of(Network& network);
void assign_parameters(const NetworkParameters& parameters, Network* network);

// As tensors of the parameters' names and shapes, and back; anything that does not fit, or is not finite, is
// an input_error. `shapes`: the parameters of such a network.
using ParameterShapes = std::vector<Parameter*>;
void add_parameters(const ParameterShapes& shapes, const NetworkParameters& parameters, State* state);
NetworkParameters read_parameters(const ParameterShapes& shapes, const State& state);

// One convolution with its norm, or the dense layer, and what it takes in a prediction.
struct NetworkLayerCosts {
  std::string name;  // as the tensors' names begin
  uint64_t inputs = 0;
  uint64_t outputs = 0;
  uint64_t places = 1;  // of an image
  uint32_t bits_per_weight = 1;
  uint64_t weight_bytes = 0;
  uint64_t norm_bytes = 0;
  uint64_t binary_ops = 0;
  uint64_t flops = 0;
};

// A trained network. The signs of a binary one are written down as bits, and it predicts on bits.
class NetworkModel : public Model {
 public:
  NetworkModel(const NetworkSpec& spec, const NetworkParameters& parameters);
  NetworkModel(NetworkSpec spec, NetworkNumbers numbers);

  const NetworkSpec& spec() const { return spec_; }
  size_t class_count() const override { return spec_.classes; }
  void check_fits(const Dataset& dataset) const override;
  std::unique_ptr<Predictor> predictor() const override;
  State state() const override;
  ModelCosts costs() const override;
  // As a network that was trained as a binary one is deployed: the signs of the convolutions' weights, times
  // the mean magnitude of a filter's, which is folded into the norm behind it; the norm's statistics stay.
  std::unique_ptr<Model> binarised() const override;
  std::vector<NetworkLayerCosts> layer_costs() const;
  // Seconds of each of these, measured just now; none of a real network.
  std::vector<double> measure_layers() const;

 private:
  NetworkSpec spec_;
  NetworkNumbers numbers_;
  std::shared_ptr<const PackedNetwork> packed_;  // what a binary network predicts with
};

// The inverse of state(); trusts nothing.
std::unique_ptr<NetworkModel> network_model_from_state(const State& state, std::string_view source);

}  // namespace bitfed
