#include "bitfed/nn/packed/packed_sign_layers.h"

namespace bitfed {
namespace {

class SignConvolution : public PackedLayer {
 public:
  explicit SignConvolution(PackedSignConvolution from) : from_(std::move(from)) {}

  PackedSizes sizes() const override {
    return {.values = from_.convolution.output_floats(), .words = from_.convolution.sign_words()};
  }

  void run(PackedWorkspace* workspace) const override {
    const PackedConvolution& convolution = from_.convolution;
    float* values = workspace->values.data();
    if (!workspace->has_signs) convolution.take_signs(values, workspace->signs.data());
    workspace->has_signs = convolution.gives_signs();
    if (convolution.gives_signs()) {
      convolution.give_signs(workspace->signs.data(), workspace->next_signs.data());
      std::swap(workspace->signs, workspace->next_signs);
    } else if (convolution.pools()) {
      convolution.pool(workspace->signs.data(), values);
    } else {
      convolution.norm(workspace->signs.data(), nullptr, from_.clips, values);
    }
    workspace->finished(from_.product);
  }

 private:
  PackedSignConvolution from_;
};

class Residual : public PackedLayer {
 public:
  explicit Residual(PackedResidual from) : from_(std::move(from)) {}

  PackedSizes sizes() const override {
    PackedSizes sizes;
    for (const PackedSignConvolution& part : from_.path) {
      sizes.cover({.inner = part.convolution.output_floats(), .words = part.convolution.sign_words()});
    }
    sizes.values = from_.path.back().convolution.output_floats();
    return sizes;
  }

  void run(PackedWorkspace* workspace) const override {
    float* values = workspace->values.data();
    float* inner = workspace->inner.data();
    uint32_t* signs = workspace->signs.data();
    uint32_t* next_signs = workspace->next_signs.data();
    from_.path[0].convolution.take_signs(values, signs);
    if (from_.shortcut) {
      from_.shortcut->convolution.norm(signs, nullptr, false, values);
      workspace->finished(from_.shortcut->product);
    }
    for (size_t i = 0; i + 1 < from_.path.size(); ++i) {
      const PackedConvolution& convolution = from_.path[i].convolution;
      if (convolution.gives_signs()) {
        convolution.give_signs(signs, next_signs);
      } else {
        convolution.norm(signs, nullptr, from_.path[i].clips, inner);
        from_.path[i + 1].convolution.take_signs(inner, next_signs);
      }
      std::swap(signs, next_signs);
      workspace->finished(from_.path[i].product);
    }
    from_.path.back().convolution.norm(signs, values, from_.clips, values);
    workspace->finished(from_.path.back().product);
  }

 private:
  PackedResidual from_;
};

}  // namespace

std::unique_ptr<PackedLayer> make_packed(PackedSignConvolution convolution) {
  return std::make_unique<SignConvolution>(std::move(convolution));
}

std::unique_ptr<PackedLayer> make_packed(PackedResidual residual) {
  return std::make_unique<Residual>(std::move(residual));
}

}  // namespace bitfed
