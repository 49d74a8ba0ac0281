#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bitfed/model/model.h"
#include "bitfed/nn/matrix.h"
#include "bitfed/nn/mlp.h"

namespace bitfed {

// How readings become inputs: (value - offset) * factor, column by column, clipped to ±limit.
struct ColumnScaling {
  std::vector<float> offset;
  std::vector<float> factor;
  float limit = 0;  // 0: not clipped

  void apply(std::span<const float> readings, float* inputs) const {
    for (size_t i = 0; i < readings.size(); ++i) {
      const float input = (readings[i] - offset[i]) * factor[i];
      inputs[i] = limit > 0 ? std::clamp(input, -limit, limit) : input;
    }
  }
  bool operator==(const ColumnScaling&) const = default;
};

// One layer of a deployed perceptron and what it takes in a prediction.
struct MlpLayerCosts {
  std::string name;  // as the tensors' names begin
  uint32_t inputs = 0;
  uint32_t outputs = 0;
  uint32_t bits_per_weight = 1;
  uint64_t weight_bytes = 0;
  uint64_t norm_bytes = 0;  // of the folded batch norm
  uint64_t binary_ops = 0;
  uint64_t flops = 0;
};

// A perceptron as it is deployed: weights of one bit (or real ones), batch norm folded into a factor and a
// shift for every unit. Sums of signs are exact integers, and the first layer adds its inputs with their
// signs in their order: any machine, in plain C, comes to the same bits.
class MlpModel : public Model {
 public:
  MlpModel(MlpShape shape, ColumnScaling scaling, const MlpParameters& parameters);

  const MlpShape& shape() const { return shape_; }
  const ColumnScaling& scaling() const { return scaling_; }
  size_t class_count() const override { return shape_.widths.back(); }
  std::vector<float> scores(const Dataset& dataset, ThreadPool& pool) const override;
  State state() const override;
  ModelCosts costs() const override;  // the sum over the layers
  std::vector<MlpLayerCosts> layer_costs() const;

 private:
  friend std::unique_ptr<MlpModel> mlp_model_from_state(const State& state, std::string_view source);
  MlpModel() = default;

  struct Layer {
    Matrix weights;  // signs where binary; a row an input
    Floats factor;
    Floats shift;
  };
  void make_layers(const std::vector<float>& weights, const std::vector<float>& factors,
                   const std::vector<float>& shifts);

  MlpShape shape_;
  ColumnScaling scaling_;
  std::vector<Layer> layers_;
};

// The inverse of state(); trusts nothing.
std::unique_ptr<MlpModel> mlp_model_from_state(const State& state, std::string_view source);

}  // namespace bitfed
