// A convolutional network as C. A block goes from pixel to pixel behind its pool: the four sums, batch norm,
// the activation and the largest of them, so that no image of the full size is ever held. Binary: between
// blocks stand the signs of the values about their mean, (x - mean) / deviation >= 0 being x >= mean. Static:
// that mean is known, so that a sum and a threshold give a sign, and values there are none but the last
// block's. Sums have the order of the network's kernels: by row and column of the kernel, then channel.

#include <fmt/format.h>

#include <algorithm>

#include "bitfed/base/error.h"
#include "bitfed/edge/c/c_body.h"
#include "bitfed/edge/c/c_functions.h"
#include "bitfed/edge/c/c_network_functions.h"
#include "bitfed/edge/c/c_text.h"
#include "bitfed/nn/layers/folded_norm.h"
#include "bitfed/nn/binary/sign_thresholds.h"

namespace bitfed {
namespace {

class NetworkWriter {
 public:
  explicit NetworkWriter(const NetworkModel& model)
      : spec_(model.spec()), input_(input_of_model(model)), state_(model.state()) {}

  CBody write() {
    if (spec_.name != "cnn4")
      throw input_error(
          "--format c: found {}; of the networks only cnn4 can be written as C: a ResNet is more than "
          "microcontrollers hold; --format onnx takes it",
          spec_.name);
    add_inputs();
    if (!spec_.binary) {
      add_real_blocks();
    } else {
      spec_.static_signs ? add_static_blocks() : add_image_blocks();
    }
    CBody body = c_body_for(input_);
    body.code = tables_.text() + functions_ +
                "\nstatic void score(const @name@_input *input, float *scores) {\n" + calls_ + "}\n";
    body.table_bytes = tables_.bytes();
    body.ram_bytes = ram_;
    return body;
  }

 private:
  static std::string text(size_t number) { return std::to_string(number); }
  size_t channels(size_t block) const {
    return block == 0 ? spec_.channels : size_t{spec_.width} << (block - 1);
  }
  size_t filters(size_t block) const { return channels(block + 1); }
  size_t height(size_t block) const { return spec_.height >> block; }
  size_t width(size_t block) const { return spec_.image_width >> block; }
  size_t values_behind(size_t block) const { return height(block + 1) * width(block + 1) * filters(block); }
  static size_t words(size_t bits) { return (bits + 31) / 32; }
  // Of all blocks most behind the first: the next has a quarter of its pixels, of at most twice the words.
  size_t sign_words_behind(size_t block) const {
    return height(block + 1) * width(block + 1) * words(filters(block));
  }

  // What an input pixel is to the network, for all 256 of each channel.
  void add_inputs() {
    std::vector<float> inputs;
    for (size_t c = 0; c < spec_.channels; ++c) {
      for (int pixel = 0; pixel < 256; ++pixel)
        inputs.push_back(input_of(spec_, static_cast<uint8_t>(pixel), c));
    }
    tables_.floats("inputs", inputs);
    functions_ += filled(kCPixels, {{"height", text(spec_.height)},
                                    {"width", text(spec_.image_width)},
                                    {"channels", text(spec_.channels)}});
  }

  FoldedNorm norm(size_t block) const {
    const std::string name = fmt::format("blocks.{}.norm.", block);
    const auto numbers = [&](const char* what) {
      return state_.values<float>(name + what, {1, filters(block)});
    };
    return fold_norm(numbers("scale"), numbers("shift"), numbers("mean"), numbers("variance"));
  }

  void add_norm(size_t block) {
    const FoldedNorm folded = norm(block);
    tables_.floats("factor_" + text(block), folded.factor);
    tables_.floats("offset_" + text(block), folded.offset);
  }

  // Of the signs behind the block, which the next one takes.
  void add_thresholds(size_t block) {
    const float mean = state_.values<float>(fmt::format("blocks.{}.signs.mean", block + 1), {1, 1})[0];
    if (block == 0) {
      tables_.floats("least_0", real_thresholds(norm(block), mean));
    } else {
      const auto most = static_cast<int32_t>(9 * channels(block));
      tables_.wide_integers("least_" + text(block), whole_thresholds(norm(block), mean, most));
    }
  }

  // A row of words a filter; in it the inputs of the first block lie together, those of others from whole
  // words on for each of the nine pixels. `turned`: filters of a negative factor are turned about.
  void add_signs(size_t block, bool turned) {
    const size_t piece = block == 0 ? 9 * channels(0) : channels(block);
    const std::vector<float> factor = norm(block).factor;
    const std::string name = fmt::format("blocks.{}.convolution.weights", block);
    const auto bits = state_.values<uint8_t>(name, {State::kAny});
    const size_t inputs = 9 * channels(block);
    const size_t row = inputs / piece * words(piece);
    std::vector<uint32_t> weights(filters(block) * row);
    for (size_t i = 0; i < inputs; ++i) {
      const size_t place = i / piece * words(piece) * 32 + i % piece;
      for (size_t o = 0; o < filters(block); ++o) {
        const size_t k = i * filters(block) + o;
        const bool sign = (bits[k / 8] >> (k % 8) & 1) != 0;
        if (sign != (turned && factor[o] < 0)) weights[o * row + place / 32] |= uint32_t{1} << (place % 32);
      }
    }
    tables_.words("weights_" + text(block), weights);
  }

  void add_dense(const std::string& from) {
    tables_.floats("dense_weights", state_.values<float>("dense.weights", {State::kAny, State::kAny}));
    functions_ += filled(kCDense, {{"inputs", text(values_behind(3))}, {"classes", text(spec_.classes)}});
    calls_ += fmt::format("  dense({}, scores);\n", from);
  }

  // From the signs in `from` to values.
  void add_value_block(size_t block, const std::string& from) {
    add_signs(block, false);
    add_norm(block);
    calls_ += fmt::format("  block({}, {}, {}, {}, {}, weights_{}, factor_{}, offset_{});\n", from,
                          height(block), width(block), channels(block), filters(block), block, block, block);
  }

  // `signs`: the functions that give the signs.
  void add_binary_functions(const char* signs, size_t values) {
    functions_ += std::string(kCOnes) + kCSignedSum + kCFused;
    functions_ += filled(kCSums + std::string(signs), {{"values", text(values)},
                                                       {"sign_words", text(sign_words_behind(0))},
                                                       {"second_sign_words", text(sign_words_behind(1))},
                                                       {"half_height", text(height(1))},
                                                       {"half_width", text(width(1))},
                                                       {"filters", text(filters(0))},
                                                       {"filter_words", text(words(filters(0)))},
                                                       {"taps", text(9 * channels(0))},
                                                       {"tap_words", text(words(9 * channels(0)))}});
  }

  void add_image_blocks() {
    const size_t values = values_behind(0);  // the most: pools take away more than filters add
    add_signs(0, false);
    add_norm(0);
    calls_ += "  first_block(input);\n";
    for (size_t block = 1; block < kBlocks; ++block) {
      calls_ += fmt::format("  take_signs({}, {});\n", height(block) * width(block), channels(block));
      add_value_block(block, "signs");
    }
    add_binary_functions(kCImageSigns, values);
    ram_ = 4 * (values + sign_words_behind(0));
    add_dense("values");
  }

  void add_static_blocks() {
    for (size_t block = 0; block + 1 < kBlocks; ++block) {
      add_signs(block, true);
      add_thresholds(block);
      calls_ += block == 0
                    ? "  first_block(input);\n"
                    : fmt::format("  sign_block(signs_{}, {}, {}, {}, {}, weights_{}, least_{}, signs_{});\n",
                                  (block + 1) % 2, height(block), width(block), channels(block),
                                  filters(block), block, block, block % 2);
    }
    add_value_block(kBlocks - 1, "signs_0");
    const size_t values = values_behind(kBlocks - 1);
    add_binary_functions(kCStaticSigns, values);
    ram_ = 4 * (values + sign_words_behind(0) + sign_words_behind(1));
    add_dense("values");
  }

  void add_real_blocks() {
    size_t values = 0;
    for (size_t block = 0; block < kBlocks; ++block) {
      values = std::max(values, values_behind(block));
      tables_.floats("weights_" + text(block),
                     state_.values<float>(fmt::format("blocks.{}.convolution.weights", block),
                                          {9 * channels(block), filters(block)}));
      add_norm(block);
      calls_ += fmt::format(
          "  block({}, values[{}], {}, {}, {}, {}, weights_{}, factor_{}, offset_{}, values[{}]);\n",
          block == 0 ? "input" : "0", (block + 1) % 2, height(block), width(block), channels(block),
          filters(block), block, block, block, block % 2);
    }
    const size_t taps = 9 * std::max(channels(0), channels(3));
    functions_ += kCFused + filled(kCReal, {{"values", text(values)}, {"taps", text(taps)}});
    ram_ = 4 * (2 * values + taps);
    add_dense("values[1]");
  }

  static constexpr size_t kBlocks = 4;
  const NetworkSpec& spec_;
  SampleShape input_;
  const State state_;
  CTables tables_;
  std::string functions_, calls_;
  size_t ram_ = 0;
};

}  // namespace

CBody c_body(const NetworkModel& model) {
  return NetworkWriter(model).write();
}

}  // namespace bitfed
