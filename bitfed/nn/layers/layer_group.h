#pragma once

#include <functional>
#include <vector>

#include "bitfed/base/hash/random.h"
#include "bitfed/nn/layers/parameter.h"

namespace bitfed {

class Layer;

// One layer, or a container of layers. A hook is called once on a group and reaches every layer in it,
// however deep: layers override the `on_...` functions of Layer, containers only for_each_layer().
class LayerGroup {
 public:
  using Visit = std::function<void(Layer& layer, const RandomStream& random)>;

  virtual ~LayerGroup() = default;

  // Calls visit(layer, its stream) for every layer, in the order of parameters(). Each layer's stream is a
  // substream of its own.
  virtual void for_each_layer(const RandomStream& random, const Visit& visit) = 0;

  // Gives all parameters their initial values.
  void initialise(const RandomStream& random);
  // The streams that training draws from, from here on (Dropout).
  void seed(const RandomStream& random);
  // The present weights become the anchor that training is held to (RotatedWeights).
  void set_anchor();
  // Before an epoch; `progress` is the share of all training that is over, from 0 to 1.
  void begin_epoch(double progress);
  // The weights become those that training fused with the anchor (RotatedWeights).
  void fuse();

  std::vector<Parameter*> parameters();
  // The values of the parameters of the network as it is deployed.
  std::vector<std::vector<float>> deployed();

 private:
  template <typename Body>
  void visit_all(Body body);
};

}  // namespace bitfed
