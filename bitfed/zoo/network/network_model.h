#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "bitfed/model/model.h"
#include "bitfed/zoo/network/network_builder.h"
#include "bitfed/zoo/network/network_parameters.h"
#include "bitfed/zoo/network/network_tensors.h"
#include "bitfed/zoo/network/packed_builder.h"

namespace bitfed {

// A trained network. A binary one stores its signs as bits and predicts on bits.
class NetworkModel : public Model {
 public:
  NetworkModel(const NetworkSpec& spec, const NetworkParameters& parameters);
  NetworkModel(NetworkSpec spec, NetworkValues values);

  const NetworkSpec& spec() const { return spec_; }
  const Architecture& architecture() const { return architecture_; }
  size_t class_count() const override { return spec_.classes; }
  void check_fits(const Dataset& dataset) const override;
  std::unique_ptr<Predictor> predictor() const override;
  State state() const override;
  ModelCosts costs() const override;
  // As a network that was trained as a binary one is deployed: the signs of the convolutions' weights, times
  // the mean magnitude of each filter, which is folded into the norm behind it; the norm's statistics stay.
  // Null for a network that cannot be binary.
  std::unique_ptr<Model> binarised() const override;
  std::vector<LayerCosts> layer_costs() const { return bitfed::layer_costs(architecture_); }
  // Seconds of each of these, measured now; empty for a real network.
  std::vector<double> measure_layers() const;

 private:
  NetworkSpec spec_;
  Architecture architecture_;
  NetworkValues values_;
  std::shared_ptr<const PackedNetwork> packed_;  // what a binary network predicts with
};

// The inverse of state(); trusts nothing.
std::unique_ptr<NetworkModel> network_model_from_state(const State& state, std::string_view source);

}  // namespace bitfed
