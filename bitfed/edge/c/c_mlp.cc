// A perceptron as C. A hidden unit is a sum and a threshold: batch norm and sign are folded into it, which is
// exact (nn/sign_thresholds). Sums of signs count differing bits.

#include <fmt/format.h>

#include <algorithm>

#include "bitfed/edge/c/c_body.h"
#include "bitfed/edge/c/c_functions.h"
#include "bitfed/edge/c/c_text.h"
#include "bitfed/nn/binary/sign_thresholds.h"

namespace bitfed {
namespace {

constexpr const char* kScale = R"(
static float inputs[@inputs@];

static void scale(const @name@_input *values) {
  int i;
  for (i = 0; i < @inputs@; ++i) {
    inputs[i] = (values[i] - offset[i]) * factor[i];
@clip@  }
}
)";

constexpr const char* kClip = R"(    if (inputs[i] < -@limit@) inputs[i] = -@limit@;
    if (@limit@ < inputs[i]) inputs[i] = @limit@;
)";

constexpr const char* kDiffering = R"(
/* What layers hand on to the next, in turns. */
static uint32_t hidden[2][@words@];

static int differing(const uint32_t *a, const uint32_t *b, int words) {
  int count = 0;
  int i;
  for (i = 0; i < words; ++i) count += ones(a[i] ^ b[i]);
  return count;
}
)";

constexpr const char* kHiddenLayer = R"(
/* A unit is on if at most so many inputs differ from its weights. */
static void layer(const uint32_t *from, int words, const uint32_t *weights, const int32_t *most, int units, uint32_t *to) {
  int unit;
  for (unit = 0; unit < units; ++unit) {
    const uint32_t on = differing(from, weights + unit * words, words) <= most[unit];
    if ((unit & 31) == 0) to[unit >> 5] = 0;
    to[unit >> 5] |= on << (unit & 31);
  }
}
)";

constexpr const char* kFirst = R"(  for (unit = 0; unit < @units@; ++unit) {
    const uint32_t on = signed_sum(inputs, @inputs@, weights_0 + unit * @words@) >= least_0[unit];
    if ((unit & 31) == 0) hidden[0][unit >> 5] = 0;
    hidden[0][unit >> 5] |= on << (unit & 31);
  }
)";

constexpr const char* kLast = R"(  for (unit = 0; unit < @units@; ++unit) {
    const float sum = @sum@;
    const float product = sum * norm_factor[unit];
    scores[unit] = product + norm_shift[unit];
  }
)";

constexpr const char* kRealHidden = R"(
/* What layers hand on to the next, in turns. */
static float hidden[2][@most@];
)";

constexpr const char* kRealLayer = R"(
static void layer(const float *from, int in, const float *weights, const float *norm_factor, const float *norm_shift,
                  int out, int last, float *to) {
  int i, unit;
  for (unit = 0; unit < out; ++unit) {
    float sum = 0;
    for (i = 0; i < in; ++i) sum = fused(from[i], weights[i * out + unit], sum);
    sum = sum * norm_factor[unit];
    sum = sum + norm_shift[unit];
    to[unit] = last || sum > 0 ? sum : 0;
  }
}
)";

// The largest number of differing bits, of n, that leaves a unit on, given its smallest such sum; -1: it
// never is.
int32_t max_differing(int32_t n, int32_t min_sum) {
  return (n - min_sum + 2) / 2 - 1;
}

struct MlpLayer {
  size_t in = 0;
  size_t out = 0;
  std::vector<uint8_t> signs;
  std::vector<float> weights, factor, shift;

  size_t words() const { return (in + 31) / 32; }
  FoldedNorm norm() const { return {factor, shift}; }
  bool sign(size_t input, size_t unit) const {
    const size_t k = input * out + unit;
    return (signs[k / 8] >> (k % 8) & 1) != 0;
  }
};

std::vector<MlpLayer> layers_of(const MlpModel& model) {
  const State state = model.state();
  std::vector<MlpLayer> layers;
  for (const LayerRecord& record : describe_mlp(model.shape()).layers) {
    if (record.kind != LayerKind::kDense) continue;
    const std::string name = record.name + ".";
    MlpLayer layer;
    layer.in = record.in.channels;
    layer.out = record.out.channels;
    if (model.shape().binary) {
      layer.signs = state.values<uint8_t>(name + "weights", {State::kAny});
    } else {
      layer.weights = state.values<float>(name + "weights", {State::kAny, State::kAny});
    }
    layer.factor = state.values<float>(name + "factor", {State::kAny});
    layer.shift = state.values<float>(name + "shift", {State::kAny});
    layers.push_back(std::move(layer));
  }
  return layers;
}

// One row of words per unit. A negative factor is made positive by flipping the unit's weights, where asked
// for.
std::vector<uint32_t> unit_words(const MlpLayer& layer, bool flip_negative) {
  std::vector<uint32_t> words(layer.out * layer.words());
  for (size_t unit = 0; unit < layer.out; ++unit) {
    const bool flipped = flip_negative && layer.factor[unit] < 0;
    for (size_t i = 0; i < layer.in; ++i) {
      if (layer.sign(i, unit) != flipped) words[unit * layer.words() + i / 32] |= uint32_t{1} << (i % 32);
    }
  }
  return words;
}

// Puts the parts together: tables, functions, and the calls that make up score().
class MlpWriter {
 public:
  explicit MlpWriter(const MlpModel& model)
      : model_(model), input_(input_of_model(model)), layers_(layers_of(model)) {}

  CBody write() {
    add_scaling();
    model_.shape().binary ? add_binary_layers() : add_real_layers();
    CBody body = c_body_for(input_);
    body.code = tables_.text() + functions_ +
                "\nstatic void score(const @name@_input *input, float *scores) {\n" + calls_ + "}\n";
    body.table_bytes = tables_.bytes();
    body.ram_bytes = ram_;
    return body;
  }

 private:
  static std::string text(size_t number) { return std::to_string(number); }

  void add_scaling() {
    const ColumnScaling& scaling = model_.scaling();
    tables_.floats("offset", scaling.offset);
    tables_.floats("factor", scaling.factor);
    const std::string clip = scaling.limit > 0 ? filled(kClip, {{"limit", c_float(scaling.limit)}}) : "";
    functions_ += filled(kScale, {{"inputs", text(layers_[0].in)}, {"clip", clip}});
    ram_ += 4 * layers_[0].in;
  }

  void add_binary_layers() {
    const size_t last = layers_.size() - 1;
    functions_ += kCSignedSum;
    if (last > 0) {
      size_t words = 0;
      for (const MlpLayer& layer : layers_) words = std::max(words, (layer.out + 31) / 32);
      functions_ += kCOnes + filled(kDiffering, {{"words", text(words)}});
      ram_ += 2 * 4 * words;
    }
    if (last > 1) functions_ += kHiddenLayer;
    calls_ += "  int unit;\n  scale(input);\n";
    for (size_t i = 0; i < last; ++i) i == 0 ? add_first() : add_hidden(i);
    add_last(last);
  }

  void add_first() {
    const MlpLayer& layer = layers_[0];
    tables_.words("weights_0", unit_words(layer, true));
    tables_.floats("least_0", real_thresholds(layer.norm(), 0));
    calls_ += filled(
        kFirst, {{"units", text(layer.out)}, {"inputs", text(layer.in)}, {"words", text(layer.words())}});
  }

  void add_hidden(size_t index) {
    const MlpLayer& layer = layers_[index];
    const auto inputs = static_cast<int32_t>(layer.in);
    std::vector<int32_t> most;
    for (const int32_t min_sum : whole_thresholds(layer.norm(), 0, inputs))
      most.push_back(max_differing(inputs, min_sum));
    tables_.words("weights_" + text(index), unit_words(layer, true));
    tables_.wide_integers("most_" + text(index), most);
    calls_ += fmt::format("  layer(hidden[{}], {}, weights_{}, most_{}, {}, hidden[{}]);\n", (index + 1) % 2,
                          layer.words(), index, index, layer.out, index % 2);
  }

  void add_last(size_t index) {
    const MlpLayer& layer = layers_[index];
    const size_t words = layer.words();
    tables_.words("weights_" + text(index), unit_words(layer, false));
    tables_.floats("norm_factor", layer.factor);
    tables_.floats("norm_shift", layer.shift);
    const std::string sum =
        index == 0 ? fmt::format("signed_sum(inputs, {}, weights_0 + unit * {})", layer.in, words)
                   : fmt::format("(float)({} - 2 * differing(hidden[{}], weights_{} + unit * {}, {}))",
                                 layer.in, (index + 1) % 2, index, words, words);
    calls_ += filled(kLast, {{"units", text(layer.out)}, {"sum", sum}});
  }

  void add_real_layers() {
    size_t most = 0;
    for (size_t i = 0; i + 1 < layers_.size(); ++i) most = std::max(most, layers_[i].out);
    if (most > 0) functions_ += filled(kRealHidden, {{"most", text(most)}});
    functions_ += std::string(kCFused) + kRealLayer;
    ram_ += 2 * 4 * most;
    calls_ += "  scale(input);\n";
    for (size_t i = 0; i < layers_.size(); ++i) {
      const MlpLayer& layer = layers_[i];
      const bool is_last = i + 1 == layers_.size();
      tables_.floats("weights_" + text(i), layer.weights);
      tables_.floats("norm_factor_" + text(i), layer.factor);
      tables_.floats("norm_shift_" + text(i), layer.shift);
      calls_ +=
          fmt::format("  layer({}, {}, weights_{}, norm_factor_{}, norm_shift_{}, {}, {}, {});\n",
                      i == 0 ? "inputs" : fmt::format("hidden[{}]", (i + 1) % 2), layer.in, i, i, i,
                      layer.out, is_last ? 1 : 0, is_last ? "scores" : fmt::format("hidden[{}]", i % 2));
    }
  }

  const MlpModel& model_;
  SampleShape input_;
  std::vector<MlpLayer> layers_;
  CTables tables_;
  std::string functions_, calls_;
  size_t ram_ = 0;
};

}  // namespace

CBody c_body(const MlpModel& model) {
  return MlpWriter(model).write();
}

}  // namespace bitfed
