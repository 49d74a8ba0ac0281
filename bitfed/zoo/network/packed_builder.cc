#include "bitfed/zoo/network/packed_builder.h"

#include <span>

#include "bitfed/nn/packed/packed_real_layers.h"
#include "bitfed/nn/packed/packed_sign_layers.h"
#include "bitfed/nn/products/sign_bits.h"
#include "bitfed/zoo/network/network_builder.h"

namespace bitfed {
namespace {

using Records = std::span<const LayerRecord>;

// Reads tensors in their order.
class Reader {
 public:
  explicit Reader(const NetworkValues& values) : values_(values) {}

  const std::vector<float>& reals() { return values_.reals[next_++]; }
  const std::vector<uint8_t>& signs() { return values_.signs[next_++]; }
  FoldedNorm norm() {
    const size_t first = next_;
    next_ += 4;
    return fold_norm(values_.reals[first], values_.reals[first + 1], values_.reals[first + 2],
                     values_.reals[first + 3]);
  }

 private:
  const NetworkValues& values_;
  size_t next_ = 0;
};

FoldedNorm identity(size_t channels) {
  return {std::vector<float>(channels, 1.0f), std::vector<float>(channels, 0.0f)};
}

// The records that are still to come.
class Cursor {
 public:
  explicit Cursor(Records records) : records_(records) {}

  bool at_end() const { return records_.empty(); }
  bool is(LayerKind kind) const { return !records_.empty() && records_[0].kind == kind; }
  bool is_pool(uint32_t window) const { return is(LayerKind::kMaxPool) && records_[0].window == window; }
  const LayerRecord& take() {
    const LayerRecord& record = records_[0];
    records_ = records_.subspan(1);
    return record;
  }
  Activation take_activation() { return is(LayerKind::kActivation) ? take().activation : Activation::kNone; }

 private:
  Records records_;
};

class Builder {
 public:
  Builder(const NetworkSpec& spec, const NetworkValues& values) : spec_(spec), reader_(values) {}

  std::vector<std::unique_ptr<PackedLayer>> build(Records records) {
    Cursor cursor(records);
    while (!cursor.at_end()) {
      if (cursor.is(LayerKind::kSigns)) {
        add_sign_convolutions(&cursor);
      } else {
        add(&cursor);
      }
    }
    return std::move(layers_);
  }

 private:
  void add(Cursor* cursor) {
    const LayerRecord& record = cursor->take();
    switch (record.kind) {
      case LayerKind::kConvolution:
        layers_.push_back(make_packed(real_convolution(record, cursor)));
        break;
      case LayerKind::kNorm: {
        const FoldedNorm norm = reader_.norm();
        layers_.push_back(make_packed_affine(record.in.pixels(), norm, cursor->take_activation()));
        break;
      }
      case LayerKind::kActivation:
        layers_.push_back(
            make_packed_affine(record.in.pixels(), identity(record.in.channels), record.activation));
        break;
      case LayerKind::kMaxPool:
        layers_.push_back(make_packed_max_pool(shape_of(record.in), record.window));
        break;
      case LayerKind::kAveragePool:
        layers_.push_back(make_packed_average_pool(shape_of(record.in), record.window));
        break;
      case LayerKind::kDense:
        add_dense(record, cursor);
        break;
      case LayerKind::kResidual:
        add_residual(record, cursor);
        break;
      case LayerKind::kSigns:    // with their convolutions
      case LayerKind::kBias:     // with its layer
      case LayerKind::kDropout:  // nothing is dropped in prediction
        break;
    }
  }

  static ImageShape shape_of(const LayerShape& shape) { return {shape.height, shape.width, shape.channels}; }

  PackedRealConvolution real_convolution(const LayerRecord& record, Cursor* cursor) {
    PackedRealConvolution convolution;
    convolution.product = product_++;
    convolution.height = record.in.height;
    convolution.width = record.in.width;
    convolution.channels = record.in.channels;
    if (layers_.empty()) convolution.inputs = input_table(spec_);
    const size_t weights = record.kernel.taps() * record.in.channels * record.out.channels;
    convolution.weights =
        record.sign_weights ? unpack_signs(reader_.signs(), weights, record.name) : reader_.reals();
    convolution.kernel = record.kernel;
    convolution.norm = identity(record.out.channels);
    if (cursor->is(LayerKind::kBias)) {
      cursor->take();
      convolution.norm.offset = reader_.reals();
    } else if (cursor->is(LayerKind::kNorm)) {
      cursor->take();
      convolution.norm = reader_.norm();
    }
    convolution.activation = cursor->take_activation();
    convolution.pools = convolution.activation != Activation::kNone && cursor->is_pool(2);
    if (convolution.pools) cursor->take();
    return convolution;
  }

  // The signs, their convolution and its norm. `border`: about the signs, where another convolution has taken
  // them.
  PackedSignConvolution sign_convolution(Cursor* cursor, bool may_pool, std::optional<size_t> border = {}) {
    PackedConvolution::Values values;
    values.border = border;
    if (cursor->is(LayerKind::kSigns) && cursor->take().mean == SignMean::kRunning)
      values.mean = reader_.reals()[0];
    const LayerRecord& record = cursor->take();
    values.kernel = record.kernel;
    values.signs = reader_.signs();
    cursor->take();
    values.norm = reader_.norm();
    const bool clips = cursor->is(LayerKind::kActivation) && peek_hardtanh(*cursor);
    if (clips) cursor->take();
    const bool pools = clips && may_pool && cursor->is_pool(2);
    if (pools) cursor->take();
    const auto order = pools ? PackedConvolution::Order::kPools : PackedConvolution::Order::kRows;
    return {product_++,
            PackedConvolution(values, record.in.height, record.in.width, record.in.channels, order), clips};
  }

  static bool peek_hardtanh(Cursor cursor) { return cursor.take().activation == Activation::kHardtanh; }

  // A run of convolutions each of which takes the signs of the one before. About a mean that is known before,
  // a sum and a threshold give the next one's signs.
  void add_sign_convolutions(Cursor* cursor) {
    std::vector<PackedSignConvolution> run;
    while (cursor->is(LayerKind::kSigns)) run.push_back(sign_convolution(cursor, true));
    link(&run);
    for (PackedSignConvolution& convolution : run) layers_.push_back(make_packed(std::move(convolution)));
  }

  static void link(std::vector<PackedSignConvolution>* run) {
    for (size_t i = 0; i + 1 < run->size(); ++i) {
      const PackedConvolution& next = (*run)[i + 1].convolution;
      if ((*run)[i].clips && next.has_static_mean()) (*run)[i].convolution.prepare_signs(next);
    }
  }

  void add_residual(const LayerRecord& record, Cursor* cursor) {
    PackedResidual residual;
    Cursor path(record.path);
    while (!path.at_end()) residual.path.push_back(sign_convolution(&path, false));
    link(&residual.path);
    Cursor shortcut(record.shortcut);
    if (!shortcut.at_end())
      residual.shortcut = sign_convolution(&shortcut, false, record.path[1].kernel.padding());
    residual.clips = cursor->take_activation() == Activation::kHardtanh;
    layers_.push_back(make_packed(std::move(residual)));
  }

  void add_dense(const LayerRecord& record, Cursor* cursor) {
    const std::vector<float>& weights = reader_.reals();
    std::vector<float> bias;
    if (cursor->is(LayerKind::kBias)) {
      cursor->take();
      bias = reader_.reals();
    }
    layers_.push_back(make_packed_dense(product_++, weights, record.out.channels, bias));
  }

  const NetworkSpec& spec_;
  Reader reader_;
  size_t product_ = 0;
  std::vector<std::unique_ptr<PackedLayer>> layers_;
};

}  // namespace

PackedNetwork make_packed_network(const NetworkSpec& spec, const Architecture& architecture,
                                  const NetworkValues& values) {
  return {architecture.input.count(), architecture.classes, Builder(spec, values).build(architecture.layers)};
}

}  // namespace bitfed
