#include "bitfed/nn/layers/layer_group.h"

#include "bitfed/nn/layers/layer.h"

namespace bitfed {

template <typename Body>
void LayerGroup::visit_all(Body body) {
  for_each_layer(RandomStream({}), [&](Layer& layer, const RandomStream& /*random*/) { body(layer); });
}

void LayerGroup::initialise(const RandomStream& random) {
  for_each_layer(random, [](Layer& layer, const RandomStream& own) { layer.on_initialise(own); });
}

void LayerGroup::seed(const RandomStream& random) {
  for_each_layer(random, [](Layer& layer, const RandomStream& own) { layer.on_seed(own); });
}

void LayerGroup::set_anchor() {
  visit_all([](Layer& layer) { layer.on_set_anchor(); });
}

void LayerGroup::begin_epoch(double progress) {
  visit_all([&](Layer& layer) { layer.on_begin_epoch(progress); });
}

void LayerGroup::fuse() {
  visit_all([](Layer& layer) { layer.on_fuse(); });
}

std::vector<Parameter*> LayerGroup::parameters() {
  std::vector<Parameter*> all;
  visit_all([&](Layer& layer) {
    for (Parameter* parameter : layer.own_parameters()) all.push_back(parameter);
  });
  return all;
}

std::vector<std::vector<float>> LayerGroup::deployed() {
  std::vector<std::vector<float>> all;
  visit_all([&](Layer& layer) {
    for (std::vector<float>& values : layer.own_deployed()) all.push_back(std::move(values));
  });
  return all;
}

}  // namespace bitfed
