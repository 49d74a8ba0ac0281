#pragma once

#include <cstddef>
#include <memory>

namespace bitfed {

// A convolution of 3 x 3 with a border of zeros, in floats, as one writes it with Eigen: patches beside each
// other, then one product. To compare with. Random numbers throughout.
class EigenConvolution {
 public:
  EigenConvolution(size_t images, size_t side, size_t inputs, size_t outputs);
  ~EigenConvolution();

  void forward();
  // The gradient of the weights, and where it is asked for that of the input.
  void backward(bool of_input);
  float any_output() const;

 private:
  struct Numbers;
  std::unique_ptr<Numbers> numbers_;
};

}  // namespace bitfed
