#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "bitfed/nn/packed/packed_convolution.h"

namespace bitfed {

// A binary convolutional network as it is deployed, on bits. The first convolution, the stem, multiplies real
// inputs, all others signs with signs. Behind the stem stand batch norm, hardtanh and
//   either a max pool, and blocks of [convolution 3 x 3, batch norm, hardtanh, max pool],
//   or residual blocks, see ResidualBlock, then the average over all pixels and a batch norm;
// then a dense layer. Gives the very bits of the layers of Network.
class PackedNetwork {
 public:
  struct Residual {
    PackedConvolution::Numbers first, second;
    std::optional<PackedConvolution::Numbers> shortcut;
  };

  struct Numbers {
    size_t height = 0;
    size_t width = 0;
    size_t channels = 0;
    std::vector<float> inputs;  // what each pixel value is to the network: [channel][256]
    std::vector<float> stem;    // by row and column of the kernel, input channel, then filter
    FoldedNorm stem_norm;
    std::vector<PackedConvolution::Numbers> pooled;
    std::vector<Residual> residual;  // none: a network of pools
    FoldedNorm norm;                 // before the dense layer of a residual network
    size_t classes = 0;
    std::vector<float> dense;  // by input, then class
    std::vector<float> bias;   // may be none
  };

  explicit PackedNetwork(const Numbers& numbers);

  // What a thread works in; made once and used again and again.
  class Workspace;
  Workspace make_workspace() const;

  // From an image's pixels (row by row, then column, then channel) to the scores of all classes.
  void predict(const uint8_t* pixels, Workspace* workspace, float* scores) const;

  // The seconds that each convolution (of a residual block the first, the second, the shortcut) and the dense
  // layer take of a prediction, measured just now.
  std::vector<double> measure_layers() const;

 private:
  struct ResidualStage {
    PackedConvolution first, second;
    std::optional<PackedConvolution> shortcut;
  };

  bool pools() const { return residual_.empty(); }
  size_t filters() const { return stem_.columns; }
  void make_pooled(const Numbers& numbers);
  void make_residual(const Numbers& numbers);
  // Calls finished(layer) behind each layer of measure_layers().
  template <typename Finished>
  void run(const uint8_t* pixels, Workspace* workspace, Finished finished) const;
  void load(const uint8_t* pixels, Workspace* workspace) const;
  void run_stem(Workspace* workspace) const;
  void run_dense(Workspace* workspace) const;

  size_t height_, width_, channels_, classes_;
  std::vector<float> inputs_;
  Matrix stem_;                        // a row an input
  std::vector<uint32_t> stem_places_;  // where the patches of two rows of pixels begin
  Floats stem_factor_, stem_offset_;
  std::vector<PackedConvolution> pooled_;
  std::vector<ResidualStage> residual_;
  Floats factor_, offset_;  // before the dense layer
  size_t last_pixels_ = 0;  // whose values the dense layer takes, or their average
  Matrix dense_;
  Floats bias_;
};

class PackedNetwork::Workspace {
 private:
  friend class PackedNetwork;
  Floats image_;   // inputs, with a border of zeros
  Floats rows_;    // sums of two rows of the stem
  Floats values_;  // behind the present block
  Floats inner_;   // behind the first convolution of a residual block, and the average
  AlignedVector<uint32_t> signs_, next_signs_;
  Floats scores_;
};

}  // namespace bitfed
