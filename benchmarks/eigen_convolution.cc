#include "benchmarks/eigen_convolution.h"

#include <Eigen/Core>

namespace bitfed {

using Rows = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

struct EigenConvolution::Numbers {
  Eigen::Index images, side, inputs;
  Rows input, input_gradient;    // a row a pixel
  Rows patches, patch_gradient;  // a row a pixel, nine times the channels
  Rows weights, weight_gradient;
  Rows output, output_gradient;

  // Calls visit(row of the patches, place in the patch, row of the input) for all that lie within the image.
  template <typename Visit>
  void for_each_place(const Visit& visit) const {
    for (Eigen::Index image = 0; image < images; ++image) {
      for (Eigen::Index y = 0; y < side; ++y) {
        for (Eigen::Index x = 0; x < side; ++x) {
          const Eigen::Index row = (image * side + y) * side + x;
          for (Eigen::Index k = 0; k < 9; ++k) {
            const Eigen::Index from_y = y + k / 3 - 1;
            const Eigen::Index from_x = x + k % 3 - 1;
            if (from_y < 0 || from_y >= side || from_x < 0 || from_x >= side) continue;
            visit(row, k, (image * side + from_y) * side + from_x);
          }
        }
      }
    }
  }
};

EigenConvolution::EigenConvolution(size_t images, size_t side, size_t inputs, size_t outputs)
    : numbers_(std::make_unique<Numbers>()) {
  Numbers& n = *numbers_;
  n.images = static_cast<Eigen::Index>(images);
  n.side = static_cast<Eigen::Index>(side);
  n.inputs = static_cast<Eigen::Index>(inputs);
  const Eigen::Index pixels = n.images * n.side * n.side;
  const auto channels = static_cast<Eigen::Index>(outputs);
  n.input = Rows::Random(pixels, n.inputs);
  n.input_gradient = Rows::Zero(pixels, n.inputs);
  n.patches = Rows::Zero(pixels, 9 * n.inputs);
  n.patch_gradient = Rows::Zero(pixels, 9 * n.inputs);
  n.weights = Rows::Random(9 * n.inputs, channels);
  n.weight_gradient = Rows::Zero(9 * n.inputs, channels);
  n.output = Rows::Zero(pixels, channels);
  n.output_gradient = Rows::Random(pixels, channels);
}

EigenConvolution::~EigenConvolution() = default;

void EigenConvolution::forward() {
  Numbers& n = *numbers_;
  n.for_each_place([&](Eigen::Index row, Eigen::Index k, Eigen::Index from) {
    n.patches.row(row).segment(k * n.inputs, n.inputs) = n.input.row(from);
  });
  n.output.noalias() = n.patches * n.weights;
}

void EigenConvolution::backward(bool of_input) {
  Numbers& n = *numbers_;
  n.weight_gradient.noalias() = n.patches.transpose() * n.output_gradient;
  if (!of_input) return;
  n.patch_gradient.noalias() = n.output_gradient * n.weights.transpose();
  n.input_gradient.setZero();
  n.for_each_place([&](Eigen::Index row, Eigen::Index k, Eigen::Index from) {
    n.input_gradient.row(from) += n.patch_gradient.row(row).segment(k * n.inputs, n.inputs);
  });
}

float EigenConvolution::any_output() const {
  return numbers_->output(0, 0) + numbers_->weight_gradient(0, 0);
}

}  // namespace bitfed
