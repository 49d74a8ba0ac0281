#pragma once

#include <cstdint>
#include <vector>

#include "bitfed/bits/bit_matrix.h"
#include "bitfed/nn/folded_norm.h"
#include "bitfed/nn/matrix.h"
#include "bitfed/nn/sign_filters.h"

namespace bitfed {

// A binary convolutional network as it is deployed, on bits: blocks of [convolution 3 x 3, batch norm,
// hardtanh, max pool of 2], then a dense layer without bias. The first convolution multiplies real inputs by
// signs, the others the signs of an image's values about their mean: (x - mean) / deviation >= 0 is x >=
// mean, so that the deviation is not needed. Gives the very bits of the layers of Network.
class PackedNetwork {
 public:
  struct Block {
    std::vector<float> signs;  // by row and column of the kernel, input channel, then filter
    FoldedNorm norm;
  };

  struct Numbers {
    size_t height = 0;
    size_t width = 0;
    size_t channels = 0;
    std::vector<float> inputs;  // what each pixel value is to the network: [channel][256]
    std::vector<Block> blocks;
    size_t classes = 0;
    std::vector<float> dense;  // by input, then class
  };

  explicit PackedNetwork(const Numbers& numbers);

  // What a thread works in; made once and used again and again.
  class Workspace;
  Workspace make_workspace() const;

  // From an image's pixels (row by row, then column, then channel) to the scores of all classes.
  void predict(const uint8_t* pixels, Workspace* workspace, float* scores) const;

  // The seconds that each block and the dense layer take of a prediction, measured just now.
  std::vector<double> measure_stages() const;

 private:
  struct FirstBlock {
    Matrix weights;  // signs, a row an input
    Floats factor, offset;
    std::vector<uint32_t> places;  // where the patches of two rows of pixels begin
  };
  struct SignBlock {
    size_t height = 0, width = 0, channels = 0;  // of its input
    SignFilters filters;
    Floats factor, offset;
    std::vector<uint32_t> places;  // of all pools, see SignPatches
    std::vector<uint8_t> cases;

    size_t words() const { return filters.pixel_words(); }
    size_t row_words() const { return (width + 2) * words(); }
  };

  SignBlock make_sign_block(const Block& block, size_t height, size_t width, size_t channels) const;
  void run_first(const uint8_t* pixels, Workspace* workspace) const;
  void run_signs(const SignBlock& block, Workspace* workspace) const;
  void run_dense(Workspace* workspace) const;

  size_t height_, width_, channels_, classes_;
  std::vector<float> inputs_;
  FirstBlock first_;
  std::vector<SignBlock> blocks_;
  Matrix dense_;
};

class PackedNetwork::Workspace {
 private:
  friend class PackedNetwork;
  Floats image_;   // inputs, with a border of zeros
  Floats rows_;    // sums of two rows of the first convolution
  Floats values_;  // behind the present block
  AlignedVector<uint32_t> signs_;
  Floats scores_;
};

}  // namespace bitfed
