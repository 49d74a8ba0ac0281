#include "bitfed/zoo/mlp_predictor.h"

#include "bitfed/base/min_times.h"
#include "bitfed/nn/kernels/kernels.h"

namespace bitfed {
namespace {

constexpr size_t kBlock = 64;  // samples that go through all layers together

}  // namespace

MlpPredictor::MlpPredictor(std::shared_ptr<const DeployedMlp> mlp)
    : Predictor({.columns = mlp->shape.widths.front()}, mlp->shape.widths.back(), kBlock),
      mlp_(std::move(mlp)),
      input_(kBlock, mlp_->shape.widths.front()) {
  for (const DeployedMlp::Layer& layer : mlp_->layers) outputs_.emplace_back(kBlock, layer.weights.columns);
}

template <typename Finished>
void MlpPredictor::run(size_t rows, Finished finished) {
  const NeuralKernels& kernels = neural_kernels();
  const Matrix* from = &input_;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const DeployedMlp::Layer& layer = mlp_->layers[i];
    Matrix& to = outputs_[i];
    const bool last = i + 1 == outputs_.size();
    const Activation activation = last                 ? Activation::kNone
                                  : mlp_->shape.binary ? Activation::kSign
                                                       : Activation::kRelu;
    kernels.multiply({from->values.data(), from->stride, 1, layer.weights.values.data(), layer.weights.stride,
                      to.values.data(), to.stride, rows, to.stride, layer.weights.rows});
    kernels.affine(to.values.data(), rows, to.stride, layer.factor.data(), layer.shift.data(), activation,
                   to.values.data());
    from = &to;
    finished(i);
  }
}

void MlpPredictor::predict_block(const Samples& samples, float* scores) {
  const size_t inputs = shape().columns;
  const size_t rows = samples.count;
  for (size_t r = 0; r < rows; ++r) mlp_->scaling.apply({samples.values + r * inputs, inputs}, input_.row(r));
  run(rows, [](size_t) {});
  const Matrix& last = outputs_.back();
  for (size_t r = 0; r < rows; ++r) std::copy_n(last.row(r), class_count(), scores + r * class_count());
}

std::vector<double> MlpPredictor::measure_layers() {
  MinTimes times;
  for (int turn = 0; turn < MinTimes::kRepetitions; ++turn) {
    times.begin();
    run(kBlock, [&](size_t layer) { times.finished(layer); });
  }
  std::vector<double> seconds = times.seconds();
  for (double& layer : seconds) layer /= kBlock;
  return seconds;
}

}  // namespace bitfed
