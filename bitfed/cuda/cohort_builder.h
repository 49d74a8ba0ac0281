#pragma once

#include <cassert>
#include <optional>
#include <span>
#include <utility>

#include "bitfed/cuda/cohort_network.h"
#include "bitfed/cuda/first_convolution.h"
#include "bitfed/cuda/tf32_products.h"
#include "bitfed/nn/layers/activation_layer.h"

// How a network's records become launches; a part of cohort_network.cc.
namespace bitfed::cuda {

using Records = std::span<const LayerRecord>;

inline bool is(Records records, LayerKind kind) {
  return !records.empty() && records[0].kind == kind;
}

inline Extent extent_of(const LayerShape& shape) {
  return {shape.height, shape.width, static_cast<uint32_t>(padded(shape.channels))};
}

inline Kernel kernel_of(const ConvolutionKernel& kernel) {
  return {static_cast<uint32_t>(kernel.side), static_cast<uint32_t>(kernel.stride),
          static_cast<uint32_t>(kernel.padding())};
}

template <typename T>
T* CohortNetwork::allocate_array(size_t count) {
  auto array = std::make_shared<Array<T>>(count);
  memory_.push_back(array);
  return array->data();
}

// A batch of all clients' values between two layers.
struct CohortNetwork::Node {
  Extent extent;
  float* value = nullptr;
  float* gradient = nullptr;  // null: not wanted
  int8_t* signs = nullptr;    // instead of values
  int16_t* whole = nullptr;   // instead of values, whole numbers
  // Signs of the values, which the norm that makes them can take, too. Null: it cannot.
  std::shared_ptr<std::optional<Signs>> signed_by_norm = nullptr;
  // Where the values were clipped: *clipped becomes true if their reader clips the gradient, too.
  std::shared_ptr<bool> clipped = nullptr;
  ClipBounds bounds{};
};

// Walks the records as network_builder.cc does, and records what a step launches.
class CohortNetwork::Builder {
 public:
  explicit Builder(CohortNetwork* network) : n_(*network), cohort_(network->cohort_) {}

  // The last layer's gradient lies at `last_gradient`, if that is given.
  Node add_all(Records records, Node node, float* last_gradient) {
    while (!records.empty()) node = add(&records, node, last_gradient);
    return node;
  }

 private:
  template <typename Work>
  void forward(Work work) {
    n_.forward_.push_back(work);
  }
  template <typename Work>
  void backward(Work work) {
    n_.backward_.push_back(work);
  }
  size_t values(const Extent& extent) const {
    return cohort_.clients * size_t{cohort_.batch} * extent.floats();
  }
  float* floats(const Extent& extent) const { return n_.allocate_array<float>(values(extent)); }
  OfClient value_of(const std::string& name) const { return n_.parameter(name, false); }
  OfClient gradient_of(const std::string& name) const { return n_.parameter(name, true); }

  // The output of a layer, behind which `rest` follows.
  Node output(const Extent& extent, Records rest, float* last_gradient) const {
    return {extent, floats(extent),
            rest.empty() && last_gradient != nullptr ? last_gradient : floats(extent)};
  }

  Node add(Records* records, const Node& in, float* last_gradient) {
    const LayerRecord& record = (*records)[0];
    *records = records->subspan(1);
    switch (record.kind) {
      case LayerKind::kSigns:
        return add_signs(record, in, nullptr);
      case LayerKind::kConvolution:
        return add_convolution(record, in, false, records, last_gradient);
      case LayerKind::kNorm:
        return add_norm(record, in, records, last_gradient);
      case LayerKind::kActivation:
        return add_activation(record.activation, {}, {}, in, *records, last_gradient);
      case LayerKind::kMaxPool:
      case LayerKind::kAveragePool:
        return add_pool(record, in, *records, last_gradient);
      case LayerKind::kDropout:
        return add_dropout(record, in, *records, last_gradient);
      case LayerKind::kDense:
        return add_dense(record, in, records, last_gradient);
      case LayerKind::kResidual:
        return add_residual(record, in, records, last_gradient);
      case LayerKind::kBias:
        break;  // with its layer
    }
    assert(false);
    return in;
  }

  static Activation take_activation(Records* records) {
    if (!is(*records, LayerKind::kActivation)) return Activation::kNone;
    const Activation activation = (*records)[0].activation;
    *records = records->subspan(1);
    return activation;
  }

  // Batch norm that reads and writes value by value, and so may overwrite its input by that one's gradient.
  static bool is_plain_norm(Records records) {
    return is(records, LayerKind::kNorm) && !pools(records.subspan(1));
  }
  static bool pools(Records behind_norm) {
    return is(behind_norm, LayerKind::kActivation) && behind_norm[0].activation != Activation::kNone &&
           is(behind_norm.subspan(1), LayerKind::kMaxPool) && behind_norm[1].window == 2;
  }

  // other: an array that the input's gradient gets added, if *other is not null when the gradient is
  // computed.
  Node add_signs(const LayerRecord& record, const Node& in, float* const* other) {
    Signs s;
    s.in = in.extent;
    s.x = in.value;
    s.signs = n_.allocate_array<int8_t>(values(in.extent));
    s.running = record.mean == SignMean::kRunning;
    s.means = n_.allocate_array<float>(cohort_.clients * size_t{cohort_.batch} * 4);
    s.clips = in.clipped != nullptr;
    s.bounds = in.bounds;
    if (s.clips) *in.clipped = true;
    if (s.running) s.running_mean = value_of(record.name + ".mean");
    Node out{in.extent, nullptr, floats(in.extent), s.signs};
    if (in.signed_by_norm != nullptr && !*in.signed_by_norm && !s.running) {
      *in.signed_by_norm = s;
    } else {
      forward([this_ = &n_, s] { signs_forward(this_->cohort_, s, this_->stream_); });
    }
    if (in.gradient == nullptr) return out;
    const float* added = other == nullptr ? nullptr : *other;
    backward([this_ = &n_, s, in, out, added] {
      signs_backward(this_->cohort_, s, out.gradient, added, in.gradient, this_->stream_);
    });
    return out;
  }

  Node add_convolution(const LayerRecord& record, const Node& in, bool adds, Records* rest,
                       float* last_gradient) {
    const Extent extent = extent_of(record.out);
    const bool biased = is(*rest, LayerKind::kBias);
    const bool of_signs = n_.network_.rotated && record.sign_weights && record.sign_inputs;
    Node out{extent, floats(extent), nullptr};
    // A gradient in the place of the output, where its reader allows it.
    out.gradient = is_plain_norm(*rest) ? out.value : floats(extent);
    assert(biased || !rest->empty());
    if (of_signs) {
      const bool fits = kernel_of(record.kernel).taps() * in.extent.channels <= INT16_MAX;
      if (is_plain_norm(*rest) && fits) out.whole = n_.allocate_array<int16_t>(values(extent));
      add_sign_convolution(record, in, out, adds, is_plain_norm(*rest));
    } else {
      add_real_convolution(record, in, out, adds);
    }
    if (!biased) return out;
    *rest = rest->subspan(1);
    const Activation activation = take_activation(rest);
    return add_activation(activation, value_of(record.name + ".bias"), gradient_of(record.name + ".bias"),
                          out, *rest, last_gradient);
  }

  Rotated add_rotated(const LayerRecord& record, uint32_t inputs) {
    const RotatedOptions& options = *n_.network_.rotated;
    Rotated r;
    r.filters = record.out.channels;
    r.inputs = inputs;
    r.weights_stride = static_cast<uint32_t>(padded(inputs));
    const FilterShape shape(inputs);
    r.shape = {static_cast<uint32_t>(shape.rows), static_cast<uint32_t>(shape.columns),
               static_cast<uint32_t>(padded(shape.columns))};
    r.r1_stride = static_cast<uint32_t>(padded(shape.rows));
    r.lambda = options.lambda;
    r.beta = options.beta;
    r.rotates = options.rotation != RotationUpdate::kNone;
    r.orthogonal = options.rotation == RotationUpdate::kEveryEpochOrthogonal;
    r.weights = value_of(record.name + ".weights");
    r.weights_gradient = gradient_of(record.name + ".weights");
    if (r.rotates) {
      r.theta = value_of(record.name + ".theta");
      r.theta_gradient = gradient_of(record.name + ".theta");
      r.r1 = value_of(record.name + ".r1");
      r.r2 = value_of(record.name + ".r2");
    }
    if (r.lambda) {
      r.lambdas = value_of(record.name + ".lambda");
      r.lambda_gradient = gradient_of(record.name + ".lambda");
    }
    if (r.beta) {
      r.gamma = value_of(record.name + ".gamma");
      r.gamma_gradient = gradient_of(record.name + ".gamma");
    }
    r.surrogates = n_.surrogates_.data();
    const size_t filters = size_t{cohort_.clients} * r.filters;
    const size_t all = filters * r.shape.floats();
    r.anchor = n_.allocate_array<float>(all);
    r.anchor_standard = n_.allocate_array<float>(all);
    r.standard = n_.allocate_array<float>(all);
    r.rotated = n_.allocate_array<float>(all);
    if (r.rotates) {
      r.rotations = n_.allocate_array<int8_t>(cohort_.clients * rotated_rotation_bytes(r));
      r.rotation_factors = n_.allocate_array<float>(cohort_.clients * size_t{4});
    }
    if (const size_t scratch = rotated_scratch_bytes(r, cohort_.clients); scratch > 0)
      r.scratch = n_.allocate_array<int8_t>(scratch);
    r.inverse = n_.allocate_array<float>(filters);
    r.alphas = n_.allocate_array<float>(filters);
    r.largest_of_filters = n_.allocate_array<float>(filters);
    r.pulls = n_.allocate_array<float>(2 * filters);
    return r;
  }

  // For a layer whose memory is complete; returns its number.
  size_t keep_rotated(const Rotated& r) {
    n_.rotated_.push_back(r);
    if (r.rotates) keep_search(r);
    return n_.rotated_.size() - 1;
  }

  void keep_search(const Rotated& r) {
    Search s = make_search(r);
    const size_t filters = size_t{cohort_.clients} * r.filters;
    s.weights = n_.allocate_array<int8_t>(filters * search_weights_bytes(s));
    s.halfway = n_.allocate_array<int8_t>(filters * search_halfway_bytes(s));
    s.signs = n_.allocate_array<int8_t>(filters * search_signs_bytes(s));
    s.weight_factors = n_.allocate_array<float>(filters);
    s.longest = n_.allocate_array<uint32_t>(2 * 64);
    s.partial = n_.allocate_array<float>(cohort_.clients * size_t{s.runs()} * r.shape.rows * r.shape.rows);
    if (s.scratch_step > 0)
      s.scratch = n_.allocate_array<int8_t>(cohort_.clients * size_t{s.runs()} * s.scratch_step);
    n_.searches_.push_back(s);
  }

  void add_sign_convolution(const LayerRecord& record, const Node& in, const Node& out, bool adds,
                            bool knows_largest) {
    SignConvolution c;
    c.kernel = kernel_of(record.kernel);
    c.in = in.extent;
    c.out = out.extent;
    c.x = in.signs;
    c.y = out.value;
    c.whole_y = out.whole;
    const uint32_t inputs = c.kernel.taps() * c.in.channels;
    const size_t weights = size_t{cohort_.clients} * c.out.channels * inputs;
    Rotated r = add_rotated(record, inputs);
    r.signs = n_.allocate_array<int8_t>(weights);
    c.weights = r.signs;
    c.transposed = n_.allocate_array<int8_t>(weights);
    c.high = n_.allocate_array<int8_t>(values(out.extent));
    c.low = n_.allocate_array<int8_t>(values(out.extent));
    const size_t lines = size_t{cohort_.clients} * c.line(cohort_);
    c.high_lines = n_.allocate_array<int8_t>(lines * c.out.channels * c.out.height);
    c.low_lines = n_.allocate_array<int8_t>(lines * c.out.channels * c.out.height);
    c.sign_lines = n_.allocate_array<int8_t>(lines * c.kernel.side * c.in.channels * c.in.height);
    c.factor = n_.allocate_array<float>(cohort_.clients);
    c.largest = n_.allocate_array<uint32_t>(cohort_.clients);
    c.sums = n_.allocate_array<int32_t>(weights);
    n_.cleared_.emplace_back(c.largest, cohort_.clients * sizeof(uint32_t));
    r.sums = c.sums;
    r.factor = c.factor;
    const size_t layer = keep_rotated(r);
    if (knows_largest) largest_ = c.largest;
    forward([this_ = &n_, c, in, layer] {
      this_->begin_rotated_layer(layer);
      sign_convolution_forward(this_->cohort_, c, this_->stream_);
      if (in.gradient == nullptr) return;
      this_->beside(this_->filters_,
                    [&](const Stream& stream) { sign_convolution_transpose(this_->cohort_, c, stream); });
    });
    backward([this_ = &n_, c, in, out, adds, knows_largest, layer] {
      if (!knows_largest) sign_convolution_largest(this_->cohort_, c, out.gradient, this_->stream_);
      sign_convolution_quantise(this_->cohort_, c, out.gradient, in.gradient != nullptr, this_->stream_);
      this_->beside(this_->products_,
                    [&](const Stream& stream) { sign_convolution_weights(this_->cohort_, c, stream); });
      this_->end_rotated_layer(layer);
      if (in.gradient != nullptr)
        sign_convolution_input(this_->cohort_, c, adds, in.gradient, this_->stream_);
    });
  }

  void add_real_convolution(const LayerRecord& record, const Node& in, const Node& out, bool adds) {
    RealConvolution c;
    c.kernel = kernel_of(record.kernel);
    c.in = in.extent;
    c.out = out.extent;
    c.x = in.value;
    c.y = out.value;
    const uint32_t inputs = c.kernel.taps() * c.in.channels;
    std::optional<size_t> layer;
    if (n_.network_.rotated && record.sign_weights) {
      const size_t step = size_t{inputs} * c.out.channels;
      c.weights = {n_.allocate_array<float>(cohort_.clients * step), step};
      c.gradient = {n_.allocate_array<float>(cohort_.clients * step), step};
      Rotated r = add_rotated(record, inputs);
      r.sign_weights = c.weights;
      r.sign_stride = c.out.channels;
      r.sign_gradient = c.gradient;
      layer = keep_rotated(r);
    } else {
      c.weights = value_of(record.name + ".weights");
      c.gradient = gradient_of(record.name + ".weights");
    }
    c.tf32 = n_.network_.tf32 && tf32_takes(c);
    if (c.tf32 && tf32_partial_floats(cohort_, c) > 0)
      c.partial = n_.allocate_array<float>(tf32_partial_floats(cohort_, c));
    forward([this_ = &n_, c, layer] {
      if (layer) this_->begin_rotated_layer(*layer);
      real_convolution_forward(this_->cohort_, c, this_->stream_);
    });
    float* sums =
        is_first_convolution(c) ? n_.allocate_array<float>(first_convolution_floats(cohort_, c)) : nullptr;
    backward([this_ = &n_, c, in, out, adds, sums, layer] {
      this_->beside(this_->products_, [&](const Stream& stream) {
        if (sums != nullptr) {
          first_convolution_weights(this_->cohort_, c, out.gradient, sums, stream);
        } else {
          real_convolution_weights(this_->cohort_, c, out.gradient, stream);
        }
      });
      if (layer) this_->end_rotated_layer(*layer);
      if (in.gradient != nullptr)
        real_convolution_input(this_->cohort_, c, out.gradient, adds, in.gradient, this_->stream_);
    });
  }

  Node add_norm(const LayerRecord& record, const Node& in, Records* rest, float* last_gradient) {
    PooledNorm p;
    Norm& norm = p.norm;
    norm.in = in.extent;
    norm.x = in.value;
    norm.whole_x = in.whole;
    norm.scale = value_of(record.name + ".scale");
    norm.shift = value_of(record.name + ".shift");
    norm.mean = value_of(record.name + ".mean");
    norm.variance = value_of(record.name + ".variance");
    norm.scale_gradient = gradient_of(record.name + ".scale");
    norm.shift_gradient = gradient_of(record.name + ".shift");
    norm.partial = n_.allocate_array<float>(norm_partial_floats(cohort_, in.extent));
    norm.batch = n_.allocate_array<float>(norm_batch_floats(cohort_, in.extent));
    uint32_t* largest = std::exchange(largest_, nullptr);
    const bool pooled = pools(*rest);
    norm.activation = take_activation(rest);
    if (pooled) *rest = rest->subspan(1);
    Node out{pooled ? p.out() : in.extent};
    // Signs follow on a block's end and on what is before a block.
    bool before_signs = is(*rest, LayerKind::kSigns) || is(*rest, LayerKind::kResidual);
    if (sum_ != nullptr && rest->empty()) {
      norm.added = sum_->shortcut;
      norm.bounds = sum_->bounds;
      out = {in.extent, sum_->value, last_gradient};
      sum_ = nullptr;
      before_signs = true;
    } else {
      out = output(out.extent, *rest, last_gradient);
    }
    norm.out = out.value;
    if (before_signs && !pooled) out.signed_by_norm = std::make_shared<std::optional<Signs>>();
    if (pooled) {
      p.chosen = floats(out.extent);
      forward([this_ = &n_, p] { pooled_norm_forward(this_->cohort_, p, this_->stream_); });
      backward([this_ = &n_, p, in, out] {
        pooled_norm_backward(this_->cohort_, p, out.gradient, in.gradient, this_->stream_);
      });
      return out;
    }
    forward([this_ = &n_, norm, signs = out.signed_by_norm] {
      norm_forward(this_->cohort_, norm, signs != nullptr && *signs ? &**signs : nullptr, this_->stream_);
    });
    backward([this_ = &n_, norm, in, out, largest] {
      float* to = in.gradient == nullptr ? out.gradient : in.gradient;
      norm_backward(this_->cohort_, norm, out.gradient, to, largest, this_->stream_);
    });
    return out;
  }

  Node add_activation(Activation activation, const OfClient& bias, const OfClient& bias_gradient,
                      const Node& in, Records rest, float* last_gradient) {
    const Node out = output(in.extent, rest, last_gradient);
    const ClipBounds bounds = clip_bounds(activation);
    float* sums =
        bias.first == nullptr
            ? nullptr
            : n_.allocate_array<float>(cohort_.clients * size_t{cohort_.batch} * in.extent.channels);
    forward([this_ = &n_, activation, bias, in, out] {
      activation_forward(this_->cohort_, in.extent, activation, in.value, bias, out.value, this_->stream_);
    });
    backward([this_ = &n_, bounds, bias_gradient, sums, in, out] {
      float* to = in.gradient == nullptr ? out.gradient : in.gradient;
      activation_backward(this_->cohort_, in.extent, bounds, out.value, out.gradient, to, this_->stream_);
      if (sums != nullptr) bias_backward(this_->cohort_, in.extent, to, sums, bias_gradient, this_->stream_);
    });
    return out;
  }

  Node add_pool(const LayerRecord& record, const Node& in, Records rest, float* last_gradient) {
    Pool pool{in.extent, extent_of(record.out), record.window, record.window};
    if (record.window == 0) {
      pool.window_height = in.extent.height;
      pool.window_width = in.extent.width;
    }
    const Node out = output(pool.out, rest, last_gradient);
    if (record.kind == LayerKind::kMaxPool) {
      auto* chosen = n_.allocate_array<uint16_t>(values(pool.out));
      forward([this_ = &n_, pool, in, out, chosen] {
        max_pool_forward(this_->cohort_, pool, in.value, out.value, chosen, this_->stream_);
      });
      if (in.gradient != nullptr)
        backward([this_ = &n_, pool, in, out, chosen] {
          max_pool_backward(this_->cohort_, pool, out.gradient, chosen, in.gradient, this_->stream_);
        });
      return out;
    }
    forward([this_ = &n_, pool, in, out] {
      average_pool_forward(this_->cohort_, pool, in.value, out.value, this_->stream_);
    });
    if (in.gradient != nullptr)
      backward([this_ = &n_, pool, in, out] {
        average_pool_backward(this_->cohort_, pool, out.gradient, in.gradient, this_->stream_);
      });
    return out;
  }

  Node add_dropout(const LayerRecord& record, const Node& in, Records rest, float* last_gradient) {
    const Node out = output(in.extent, rest, last_gradient);
    auto layer = std::make_unique<DropoutLayer>();
    layer->count = in.extent.floats();
    layer->used = record.in.channels;
    layer->channels = in.extent.channels;
    layer->rate = record.rate;
    layer->mask = Array<float>(values(in.extent));
    layer->streams.assign(cohort_.clients, RandomStream({.purpose = "dropout"}));
    layer->passes.assign(cohort_.clients, 0);
    const float* mask = layer->mask.data();
    n_.dropouts_.push_back(std::move(layer));
    forward([this_ = &n_, in, out, mask] {
      multiply_values(this_->cohort_, in.extent, in.value, mask, out.value, this_->stream_);
    });
    if (in.gradient != nullptr)
      backward([this_ = &n_, in, out, mask] {
        multiply_values(this_->cohort_, in.extent, out.gradient, mask, in.gradient, this_->stream_);
      });
    return out;
  }

  Node add_dense(const LayerRecord& record, const Node& in, Records* rest, float* last_gradient) {
    Dense d;
    d.inputs = static_cast<uint32_t>(in.extent.floats());
    d.units = record.out.channels;
    d.x = in.value;
    d.weights = value_of(record.name + ".weights");
    d.gradient = gradient_of(record.name + ".weights");
    d.has_bias = is(*rest, LayerKind::kBias);
    if (d.has_bias) {
      *rest = rest->subspan(1);
      d.bias = value_of(record.name + ".bias");
      d.bias_gradient = gradient_of(record.name + ".bias");
    }
    const Node out = output(extent_of(record.out), *rest, last_gradient);
    d.y = out.value;
    forward([this_ = &n_, d] { dense_forward(this_->cohort_, d, this_->stream_); });
    backward([this_ = &n_, d, in, out] {
      dense_backward(this_->cohort_, d, out.gradient, in.gradient, this_->stream_);
    });
    return out;
  }

  Node add_residual(const LayerRecord& record, const Node& in, Records* rest, float* last_gradient) {
    const ClipBounds bounds = clip_bounds(take_activation(rest));
    Node out = output(extent_of(record.out), *rest, last_gradient);
    // The gradient of the sum, that path and shortcut share; the output's own may be read by others.
    float* sum_gradient = rest->empty() && last_gradient != nullptr ? floats(out.extent) : out.gradient;
    const bool identity = record.shortcut.empty();
    Records path = record.path;
    Node entry = in;
    if (is(path, LayerKind::kSigns)) {
      entry = add_signs(path[0], in, identity ? &sum_gradient : nullptr);
      path = path.subspan(1);
    } else if (identity && in.gradient != nullptr) {
      // Behind the path's backward pass, which is recorded later and runs earlier.
      backward([this_ = &n_, in, sum_gradient] {
        add_clipped(this_->cohort_, in.extent, in.gradient, sum_gradient, clip_bounds(Activation::kNone),
                    in.gradient, this_->stream_);
      });
    }
    // The shortcut first: the backward pass goes the other way, and the path's gradient is what the shortcut
    // adds to.
    Node shortcut = in;
    if (!identity) {
      Records behind = Records(record.shortcut).subspan(1);
      shortcut = add_convolution(record.shortcut[0], entry, true, &behind, sum_gradient);
      shortcut = add_all(behind, shortcut, sum_gradient);
    }
    // A path's last norm adds the shortcut by itself.
    const ResidualSum sum{shortcut.value, out.value, bounds};
    sum_ = &sum;
    const Node main = add_all(path, entry, sum_gradient);
    if (std::exchange(sum_, nullptr) == nullptr) {
      out.signed_by_norm = main.signed_by_norm;
    } else {
      forward([this_ = &n_, main, sum, out] {
        add_clipped(this_->cohort_, out.extent, main.value, sum.shortcut, sum.bounds, out.value,
                    this_->stream_);
      });
    }
    const auto clipped = std::make_shared<bool>(false);
    backward([this_ = &n_, out, bounds, sum_gradient, clipped] {
      if (*clipped) return;
      activation_backward(this_->cohort_, out.extent, bounds, out.value, out.gradient, sum_gradient,
                          this_->stream_);
    });
    if (sum_gradient == out.gradient) {
      out.clipped = clipped;
      out.bounds = bounds;
    }
    return out;
  }

  CohortNetwork& n_;
  Cohort cohort_;
  struct ResidualSum {
    const float* shortcut;
    float* value;
    ClipBounds bounds;
  };
  const ResidualSum* sum_ = nullptr;  // that the last norm of the path at hand may compute
  uint32_t* largest_ = nullptr;       // of the convolution before the norm that comes next
};

}  // namespace bitfed::cuda
