#include "bitfed/nn/packed/packed_network.h"

namespace bitfed {

PackedNetwork::PackedNetwork(size_t image_bytes, size_t classes,
                             std::vector<std::unique_ptr<PackedLayer>> layers)
    : image_bytes_(image_bytes), classes_(classes), layers_(std::move(layers)) {
  for (const auto& layer : layers_) sizes_.cover(layer->sizes());
}

void PackedNetwork::run(const uint8_t* pixels, PackedWorkspace* workspace) const {
  workspace->pixels = pixels;
  workspace->has_signs = false;
  for (const auto& layer : layers_) layer->run(workspace);
}

void PackedNetwork::predict(const uint8_t* pixels, PackedWorkspace* workspace, float* scores) const {
  run(pixels, workspace);
  std::copy_n(workspace->values.data(), classes_, scores);
}

std::vector<double> PackedNetwork::measure_layers() const {
  PackedWorkspace workspace = make_workspace();
  std::vector<uint8_t> pixels(image_bytes_);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i * 37);
  MinTimes times;
  workspace.times = &times;
  for (int turn = 0; turn < MinTimes::kRepetitions; ++turn) {
    times.begin();
    run(pixels.data(), &workspace);
  }
  return times.seconds();
}

}  // namespace bitfed
