// Convolutional networks as ONNX, walking their description.
//
// Runtimes fold batch norm into the filters before it. The sums of signs would then no longer be whole
// numbers, and signs taken of them could differ from training. Two ways keep runtimes from that: where a pool
// follows, the largest sum of a window is taken before the norm, whose factors are made positive by flipping
// filters; elsewhere the sums are rounded, which changes no whole number.

#include "bitfed/edge/onnx/onnx_body.h"
#include "bitfed/edge/onnx/onnx_layers.h"

namespace bitfed {
namespace {

using Records = std::span<const LayerRecord>;

bool starts_with(Records records, std::initializer_list<LayerKind> kinds) {
  if (records.size() < kinds.size()) return false;
  return std::equal(kinds.begin(), kinds.end(), records.begin(),
                    [](LayerKind kind, const LayerRecord& record) { return kind == record.kind; });
}

void make_factors_positive(OnnxFilters* filters, FoldedNorm* norm) {
  std::vector<float>& weights = filters->weights;
  for (size_t filter = 0; filter < filters->out; ++filter) {
    float& factor = norm->factor[filter];
    if (!(factor < 0)) continue;
    factor = -factor;
    for (size_t i = filter; i < weights.size(); i += filters->out) weights[i] = -weights[i];
  }
}

class NetworkGraph {
 public:
  NetworkGraph(const NetworkModel& model, OnnxGraph* graph)
      : binary_(model.spec().binary), graph_(*graph), layers_(model, graph) {}

  std::string write(const std::string& input, Records records) {
    return walk(layers_.inputs(input), records);
  }

 private:
  std::string walk(std::string x, Records records) {
    while (!records.empty()) records = add(records, &x);
    return x;
  }

  // Adds the nodes of the next layers; returns the records behind them.
  Records add(Records records, std::string* x) {
    const LayerRecord& record = records[0];
    const Records rest = records.subspan(1);
    switch (record.kind) {
      case LayerKind::kSigns:
        *x = layers_.signs(*x, record);
        return rest;
      case LayerKind::kConvolution:
        if (record.sign_weights &&
            starts_with(rest, {LayerKind::kNorm, LayerKind::kActivation, LayerKind::kMaxPool}))
          return add_pooled(records, x);
        *x = convolution(*x, record, layers_.filters(record));
        if (record.sign_inputs) *x = graph_.node("Round", {*x});
        return rest;
      case LayerKind::kBias:
        *x = layers_.biased(*x, record);
        return rest;
      case LayerKind::kNorm:
        *x = layers_.normed(*x, layers_.norm(record));
        return rest;
      case LayerKind::kActivation:
        *x = layers_.activated(*x, record.activation);
        return rest;
      case LayerKind::kMaxPool:
        *x = layers_.max_pool(*x, record.window);
        return rest;
      case LayerKind::kAveragePool:
        *x = layers_.average_pool(*x, record);
        return rest;
      case LayerKind::kDropout:
        return rest;
      case LayerKind::kDense: {
        const bool biased = starts_with(rest, {LayerKind::kBias});
        const Records behind = rest.subspan(biased ? 1 : 0);
        *x = layers_.dense(*x, record, biased ? Bias::kLearned : Bias::kNone);
        if (!behind.empty()) *x = layers_.as_image(*x, record.out.channels);
        return behind;
      }
      case LayerKind::kResidual:
        *x = residual(*x, record);
        return rest;
    }
    return rest;
  }

  std::string convolution(const std::string& x, const LayerRecord& record, const OnnxFilters& filters) {
    return binary_ && !record.sign_inputs ? layers_.ordered_convolution(x, record, filters)
                                          : layers_.convolution(x, filters);
  }

  Records add_pooled(Records records, std::string* x) {
    OnnxFilters filters = layers_.filters(records[0]);
    FoldedNorm norm = layers_.norm(records[1]);
    make_factors_positive(&filters, &norm);
    *x = layers_.max_pool(convolution(*x, records[0], filters), records[3].window);
    *x = layers_.activated(layers_.normed(*x, norm), records[2].activation);
    return records.subspan(4);
  }

  // The path's signs are the shortcut's, too.
  std::string residual(const std::string& x, const LayerRecord& record) {
    Records path = record.path;
    std::string from = x;
    if (path[0].kind == LayerKind::kSigns) path = add(path, &from);
    const std::string sum = walk(from, path);
    const std::string shortcut = record.shortcut.empty() ? x : walk(from, record.shortcut);
    return graph_.node("Add", {sum, shortcut});
  }

  bool binary_;
  OnnxGraph& graph_;
  OnnxLayers layers_;
};

}  // namespace

std::string add_onnx(const NetworkModel& model, const std::string& input, OnnxGraph* graph) {
  return NetworkGraph(model, graph).write(input, model.architecture().layers);
}

}  // namespace bitfed
