// A network as C, layer by layer, walking its description. Two buffers of values take turns, a third holds
// what a residual block adds at its end; signs have a buffer of their own. Sums have the order of the
// network's kernels: by row and column of the kernel, then channel.

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "bitfed/edge/c/c_body.h"
#include "bitfed/edge/c/c_functions.h"
#include "bitfed/edge/c/c_network_functions.h"
#include "bitfed/edge/c/c_pooled_blocks.h"
#include "bitfed/edge/c/c_text.h"
#include "bitfed/nn/norm/folded_norm.h"

namespace bitfed {
namespace {

size_t words_of(size_t bits) {
  return (bits + 31) / 32;
}

class NetworkWriter {
 public:
  explicit NetworkWriter(const NetworkModel& model)
      : spec_(model.spec()),
        architecture_(model.architecture()),
        input_(input_of_model(model)),
        state_(model.state()) {}

  CBody write() {
    add_inputs();
    walk(architecture_.layers, "values");
    // The last layer's values are the scores.
    call("memcpy(scores, values, sizeof(float) * {});", architecture_.classes);
    CBody body = c_body_for(input_);
    body.code = tables_.text() + buffers() + functions_ +
                "\nstatic void score(const @name@_input *input, float *scores) {\n"
                "  float *values = buffer_0;\n  float *next = buffer_1;\n  float *swap;\n  (void)next;\n  "
                "(void)swap;\n" +
                calls_ + "}\n";
    body.table_bytes = tables_.bytes();
    body.ram_bytes = ram_;
    return body;
  }

 private:
  template <typename... Values>
  void call(fmt::format_string<Values...> format, Values&&... values) {
    calls_ += "  " + fmt::format(format, std::forward<Values>(values)...) + "\n";
  }

  // Functions are written once, before the first that needs them.
  void need(const char* function) {
    if (needed_.insert(function).second) functions_ += function;
  }

  void swap() { call("swap = values; values = next; next = swap;"); }

  std::string buffers() {
    std::string text =
        fmt::format("\nstatic float buffer_0[{}];\nstatic float buffer_1[{}];\n", values_, values_);
    ram_ += 2 * sizeof(float) * values_;
    if (shortcut_values_ > 0) text += fmt::format("static float shortcut[{}];\n", shortcut_values_);
    ram_ += sizeof(float) * shortcut_values_;
    if (sign_words_ > 0) functions_ = filled(functions_, {{"sign_words", std::to_string(sign_words_)}});
    ram_ += sizeof(uint32_t) * sign_words_;
    return text;
  }

  void add_inputs() {
    std::vector<float> inputs;
    for (size_t c = 0; c < spec_.channels; ++c) {
      for (int pixel = 0; pixel < 256; ++pixel)
        inputs.push_back(input_of(spec_, static_cast<uint8_t>(pixel), c));
    }
    tables_.floats("inputs", inputs);
    functions_ += filled(kCLoad, {{"count", std::to_string(architecture_.input.count())},
                                  {"channels", std::to_string(spec_.channels)}});
    values_ = architecture_.input.count();
    call("load(input, values);");
  }

  // `in`: where the first layer's input stands, "values" or "shortcut"; all others work on `values`.
  void walk(const std::vector<LayerRecord>& records, const char* in) {
    for (const LayerRecord& record : records) {
      add(record, &record == records.data() ? in : "values");
      values_ = std::max(values_, record.out.count());
    }
  }

  void add(const LayerRecord& record, const char* in) {
    const size_t index = index_++;
    const auto pixels = record.in.pixels();
    const auto channels = record.in.channels;
    switch (record.kind) {
      case LayerKind::kSigns:
        return add_signs(record, in);
      case LayerKind::kConvolution:
        return add_convolution(record, index, in);
      case LayerKind::kBias:
        need(kCBias);
        tables_.floats(fmt::format("bias_{}", index), real(record, "bias"));
        return call("add_bias(values, {}, {}, bias_{});", pixels, channels, index);
      case LayerKind::kNorm: {
        need(kCAffine);
        const FoldedNorm norm = fold_norm(real(record, "scale"), real(record, "shift"), real(record, "mean"),
                                          real(record, "variance"));
        tables_.floats(fmt::format("factor_{}", index), norm.factor);
        tables_.floats(fmt::format("offset_{}", index), norm.offset);
        return call("affine(values, {}, {}, factor_{}, offset_{});", pixels, channels, index, index);
      }
      case LayerKind::kActivation: {
        const bool relu = record.activation == Activation::kRelu;
        need(relu ? kCRelu : kCHardtanh);
        return call("{}(values, {});", relu ? "relu" : "hardtanh", record.in.count());
      }
      case LayerKind::kMaxPool:
        need(kCMaxPool);
        call("max_pool(values, {}, {}, {}, {}, next);", record.in.height, record.in.width, channels,
             record.window);
        return swap();
      case LayerKind::kAveragePool:
        return add_average_pool(record);
      case LayerKind::kDropout:
        return;
      case LayerKind::kDense:
        need(kCFused);
        need(kCDenseLayer);
        tables_.floats(fmt::format("weights_{}", index), real(record, "weights"));
        call("dense(values, {}, {}, weights_{}, next);", record.in.count(), record.out.channels, index);
        return swap();
      case LayerKind::kResidual:
        return add_residual(record);
    }
  }

  std::vector<float> real(const LayerRecord& record, const char* what) const {
    return state_.values<float>(record.name + "." + what, {State::kAny, State::kAny});
  }

  void add_signs(const LayerRecord& record, const char* in) {
    need(kCTakeSigns);
    sign_words_ = std::max<size_t>(sign_words_, record.in.pixels() * words_of(record.in.channels));
    std::string mean = fmt::format("image_mean({}, {})", in, record.in.count());
    if (record.mean == SignMean::kRunning) {
      mean = c_float(state_.values<float>(record.name + ".mean", {1, 1})[0]);
    } else {
      need(kCImageMean);
    }
    call("signs_about({}, {}, {}, {});", mean, in, record.in.pixels(), record.in.channels);
  }

  void add_convolution(const LayerRecord& record, size_t index, const char* in) {
    need(kCGeometry);
    functions_ += fmt::format(
        "\nstatic const geometry geometry_{} = {{{}, {}, {}, {}, {}, {}, {}, {}, {}}};\n", index,
        record.in.height, record.in.width, record.in.channels, record.kernel.side, record.kernel.stride,
        record.kernel.padding(), record.out.height, record.out.width, record.out.channels);
    const char* function = "convolve";
    if (!record.sign_weights) {
      need(kCFused);
      need(kCRealConvolution);
      tables_.floats(fmt::format("weights_{}", index), real(record, "weights"));
    } else if (!record.sign_inputs) {
      function = "convolve_by_signs";
      need(kCSignWeightConvolution);
      tables_.words(fmt::format("weights_{}", index), plain_words(record));
    } else {
      function = "convolve_signs";
      need(kCOnes);
      need(kCSignConvolution);
      tables_.words(fmt::format("weights_{}", index), filter_words(record));
    }
    call("{}(&geometry_{}, {}, weights_{}, next);", function, index, record.sign_inputs ? "signs" : in,
         index);
    swap();
  }

  std::vector<uint8_t> bits_of(const LayerRecord& record) const {
    return state_.values<uint8_t>(record.name + ".weights", {State::kAny});
  }

  // The bits as they are, in words.
  std::vector<uint32_t> plain_words(const LayerRecord& record) const {
    const std::vector<uint8_t> bits = bits_of(record);
    std::vector<uint32_t> words((bits.size() + 3) / 4);
    for (size_t i = 0; i < bits.size(); ++i) words[i / 4] |= uint32_t{bits[i]} << (8 * (i % 4));
    return words;
  }

  // By filter, then tap, the channels of a tap in whole words.
  std::vector<uint32_t> filter_words(const LayerRecord& record) const {
    const std::vector<uint8_t> bits = bits_of(record);
    const size_t channels = record.in.channels;
    const size_t filters = record.out.channels;
    const size_t taps = record.kernel.taps();
    std::vector<uint32_t> words(filters * taps * words_of(channels));
    for (size_t input = 0; input < taps * channels; ++input) {
      for (size_t filter = 0; filter < filters; ++filter) {
        const size_t k = input * filters + filter;
        if ((bits[k / 8] >> (k % 8) & 1) == 0) continue;
        const size_t word = (filter * taps + input / channels) * words_of(channels) + input % channels / 32;
        words[word] |= uint32_t{1} << (input % channels % 32);
      }
    }
    return words;
  }

  void add_average_pool(const LayerRecord& record) {
    need(kCAveragePool);
    const uint32_t high = record.window == 0 ? record.in.height : record.window;
    const uint32_t wide = record.window == 0 ? record.in.width : record.window;
    call("average_pool(values, {}, {}, {}, {}, {}, {}, next);", record.in.width, record.in.channels, high,
         wide, record.out.height, record.out.width);
    swap();
  }

  // `shortcut` keeps x. Behind the path, whose values are then in `next`, come those of the shortcut.
  void add_residual(const LayerRecord& record) {
    need(kCAdd);
    shortcut_values_ = std::max(shortcut_values_, record.in.count());
    call("memcpy(shortcut, values, sizeof(float) * {});", record.in.count());
    walk(record.path, "values");
    if (!record.shortcut.empty()) {
      if (record.path[0].kind == LayerKind::kSigns) add_signs(record.path[0], "shortcut");
      walk(record.shortcut, "shortcut");
    }
    call("add(values, {}, {});", record.shortcut.empty() ? "shortcut" : "next", record.out.count());
  }

  const NetworkSpec& spec_;
  const Architecture& architecture_;
  SampleShape input_;
  const State state_;
  CTables tables_;
  std::string functions_, calls_;
  std::set<std::string> needed_;
  size_t index_ = 0;
  uint64_t values_ = 0, shortcut_values_ = 0, sign_words_ = 0;
  uint64_t ram_ = 0;
};

}  // namespace

CBody c_body(const NetworkModel& model) {
  if (is_pooled_blocks(model.architecture())) return pooled_blocks_body(model);
  return NetworkWriter(model).write();
}

}  // namespace bitfed
