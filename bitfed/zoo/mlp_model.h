#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bitfed/model/model.h"
#include "bitfed/nn/mlp/mlp.h"
#include "bitfed/zoo/architectures/mlp.h"
#include "bitfed/zoo/mlp_predictor.h"
#include "bitfed/zoo/network/network_tensors.h"

namespace bitfed {

// A perceptron as it is deployed: weights of one bit (or real ones), batch norm folded into a factor and a
// shift for every unit. Sums of signs are exact integers, and the first layer adds its inputs with their
// signs in their order: any machine, in plain C, comes to the same bits.
class MlpModel : public Model {
 public:
  MlpModel(MlpShape shape, ColumnScaling scaling, const MlpParameters& parameters);

  const MlpShape& shape() const { return mlp_->shape; }
  const ColumnScaling& scaling() const { return mlp_->scaling; }
  size_t class_count() const override { return shape().widths.back(); }
  void check_fits(const Dataset& dataset) const override;
  std::unique_ptr<Predictor> predictor() const override { return std::make_unique<MlpPredictor>(mlp_); }
  State state() const override;
  ModelCosts costs() const override;  // the sum over the layers
  std::vector<LayerCosts> layer_costs() const { return bitfed::layer_costs(describe_mlp(shape())); }
  // Seconds of each of these, measured now.
  std::vector<double> measure_layers() const { return MlpPredictor(mlp_).measure_layers(); }

 private:
  friend std::unique_ptr<MlpModel> mlp_model_from_state(const State& state, std::string_view source);
  explicit MlpModel(DeployedMlp mlp) : mlp_(std::make_shared<const DeployedMlp>(std::move(mlp))) {}

  std::shared_ptr<const DeployedMlp> mlp_;
};

// The inverse of state(); trusts nothing.
std::unique_ptr<MlpModel> mlp_model_from_state(const State& state, std::string_view source);

}  // namespace bitfed
