#include "bitfed/zoo/network/network_tensors.h"

namespace bitfed {
namespace {

uint64_t inputs_of(const LayerRecord& record) {
  return record.kind == LayerKind::kDense ? record.in.count() : record.kernel.taps() * record.in.channels;
}

void add_norm(const LayerRecord& record, std::vector<NetworkTensor>* tensors) {
  const uint64_t channels = record.out.channels;
  if (record.folded) {
    for (const char* what : {".factor", ".shift"}) tensors->push_back({record.name + what, 1, channels});
    return;
  }
  for (const char* what : {".scale", ".shift"}) tensors->push_back({record.name + what, 1, channels});
  for (const char* what : {".mean", ".variance"})
    tensors->push_back({record.name + what, 1, channels, false, true});
}

LayerCosts costs_of(const LayerRecord& record) {
  LayerCosts costs;
  costs.name = record.name;
  if (costs.name.ends_with(".convolution")) costs.name.resize(costs.name.rfind('.'));
  costs.inputs = inputs_of(record);
  costs.outputs = record.out.channels;
  costs.positions = record.out.pixels();
  costs.bits_per_weight = record.sign_weights ? 1 : 8 * sizeof(float);
  costs.weight_bytes = (costs.inputs * costs.outputs * costs.bits_per_weight + 7) / 8;
  if (record.sign_weights && record.sign_inputs) {
    costs.binary_ops = costs.multiply_adds();
  } else {
    costs.flops = (record.sign_weights ? 1 : 2) * costs.multiply_adds();
  }
  return costs;
}

}  // namespace

std::vector<NetworkTensor> network_tensors(const Architecture& architecture) {
  std::vector<NetworkTensor> tensors;
  for_each_record(architecture.layers, [&](const LayerRecord& record) {
    if (record.kind == LayerKind::kSigns && record.mean == SignMean::kRunning)
      tensors.push_back({record.name + ".mean", 1, 1, false, true});
    if (record.is_product())
      tensors.push_back(
          {record.name + ".weights", inputs_of(record), record.out.channels, record.sign_weights});
    if (record.kind == LayerKind::kBias) tensors.push_back({record.name + ".bias", 1, record.out.channels});
    if (record.kind == LayerKind::kNorm) add_norm(record, &tensors);
  });
  return tensors;
}

std::vector<LayerCosts> layer_costs(const Architecture& architecture) {
  std::vector<LayerCosts> all;
  bool behind_product = false;
  for_each_record(architecture.layers, [&](const LayerRecord& record) {
    if (record.is_product()) {
      all.push_back(costs_of(record));
      behind_product = true;
      return;
    }
    // Of two values per channel; a network's own batch norm is not among the operations that papers count.
    if (behind_product && record.kind == LayerKind::kNorm) {
      all.back().norm_bytes += 2 * sizeof(float) * record.out.channels;
      if (record.folded) all.back().flops += 2 * uint64_t{record.out.channels};
    }
    if (behind_product && record.kind == LayerKind::kBias)
      all.back().norm_bytes += sizeof(float) * record.out.channels;
    behind_product = behind_product && record.kind == LayerKind::kBias;
  });
  return all;
}

}  // namespace bitfed
