#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "bitfed/model/predictor.h"
#include "bitfed/nn/kernels/matrix.h"
#include "bitfed/nn/mlp/mlp.h"

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

// A perceptron as it is deployed: batch norm folded into a factor and a shift for every unit.
struct DeployedMlp {
  struct Layer {
    Matrix weights;  // signs where binary; a row an input
    Floats factor;
    Floats shift;
  };

  MlpShape shape;
  ColumnScaling scaling;
  std::vector<Layer> layers;
};

class MlpPredictor : public Predictor {
 public:
  explicit MlpPredictor(std::shared_ptr<const DeployedMlp> mlp);
  std::unique_ptr<Predictor> another() const override { return std::make_unique<MlpPredictor>(mlp_); }

  // The seconds of each layer for a sample of a block, measured just now.
  std::vector<double> measure_layers();

 private:
  // From the first rows of the input to the last layer's outputs; calls finished(layer) behind each.
  template <typename Finished>
  void run(size_t rows, Finished finished);
  void predict_block(const Samples& samples, float* scores) override;

  std::shared_ptr<const DeployedMlp> mlp_;
  Matrix input_;
  std::vector<Matrix> outputs_;  // of each layer
};

}  // namespace bitfed
