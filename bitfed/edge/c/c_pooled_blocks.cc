// A network of four pooled blocks (3 x 3 convolution, batch norm, activation, 2 x 2 max pool) and a dense
// layer as C, with less memory than layer by layer (c_network.cc). A block goes from pixel to pixel behind
// its pool: the four sums, batch norm, the activation and the largest of them, so that no image of the full
// size is ever held. Binary: between blocks stand the signs of the values about their mean, (x - mean) /
// deviation >= 0 being x >= mean. Static: that mean is known, so that a sum and a threshold give a sign, and
// only the last block has values. Sums have the order of the network's kernels: by row and column of the
// kernel, then channel.

#include <fmt/format.h>

#include <algorithm>

#include "bitfed/edge/c/c_body.h"
#include "bitfed/edge/c/c_functions.h"
#include "bitfed/edge/c/c_pooled_block_functions.h"
#include "bitfed/edge/c/c_pooled_blocks.h"
#include "bitfed/edge/c/c_text.h"
#include "bitfed/nn/binary/sign_thresholds.h"
#include "bitfed/nn/norm/folded_norm.h"

namespace bitfed {
namespace {

class PooledBlocksWriter {
 public:
  explicit PooledBlocksWriter(const NetworkModel& model)
      : spec_(model.spec()), input_(input_of_model(model)), state_(model.state()) {
    for (const LayerRecord& record : model.architecture().layers) {
      if (record.kind == LayerKind::kConvolution) convolutions_.push_back(&record);
      if (record.kind == LayerKind::kNorm) norms_.push_back(record.name);
      if (record.kind == LayerKind::kSigns) signs_.push_back(record.name);
      if (record.kind == LayerKind::kDense) dense_ = record.name;
    }
  }

  CBody write() {
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
  size_t channels(size_t block) const { return convolutions_[block]->in.channels; }
  size_t filters(size_t block) const { return convolutions_[block]->out.channels; }
  size_t height(size_t block) const { return spec_.height >> block; }
  size_t width(size_t block) const { return spec_.image_width >> block; }
  size_t values_behind(size_t block) const { return height(block + 1) * width(block + 1) * filters(block); }
  static size_t words(size_t bits) { return (bits + 31) / 32; }
  // The most of all blocks behind the first: the next has a quarter of its pixels, of at most twice the
  // words.
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
    const auto values = [&](const char* what) {
      return state_.values<float>(norms_[block] + what, {1, filters(block)});
    };
    return fold_norm(values(".scale"), values(".shift"), values(".mean"), values(".variance"));
  }

  void add_norm(size_t block) {
    const FoldedNorm folded = norm(block);
    tables_.floats("factor_" + text(block), folded.factor);
    tables_.floats("offset_" + text(block), folded.offset);
  }

  // Of the signs behind the block, which the next one takes.
  void add_thresholds(size_t block) {
    const float mean = state_.values<float>(signs_[block] + ".mean", {1, 1})[0];
    if (block == 0) {
      tables_.floats("least_0", real_thresholds(norm(block), mean));
    } else {
      const auto most = static_cast<int32_t>(9 * channels(block));
      tables_.wide_integers("least_" + text(block), whole_thresholds(norm(block), mean, most));
    }
  }

  // A row of words a filter; in it the inputs of the first block lie together, those of others from whole
  // words on for each of the nine pixels. `flips`: filters of a negative factor are negated.
  void add_signs(size_t block, bool flips) {
    const size_t piece = block == 0 ? 9 * channels(0) : channels(block);
    const std::vector<float> factor = norm(block).factor;
    const auto bits = state_.values<uint8_t>(convolutions_[block]->name + ".weights", {State::kAny});
    const size_t inputs = 9 * channels(block);
    const size_t row = inputs / piece * words(piece);
    std::vector<uint32_t> weights(filters(block) * row);
    for (size_t i = 0; i < inputs; ++i) {
      const size_t place = i / piece * words(piece) * 32 + i % piece;
      for (size_t o = 0; o < filters(block); ++o) {
        const size_t k = i * filters(block) + o;
        const bool sign = (bits[k / 8] >> (k % 8) & 1) != 0;
        if (sign != (flips && factor[o] < 0)) weights[o * row + place / 32] |= uint32_t{1} << (place % 32);
      }
    }
    tables_.words("weights_" + text(block), weights);
  }

  void add_dense(const std::string& from) {
    tables_.floats("dense_weights", state_.values<float>(dense_ + ".weights", {State::kAny, State::kAny}));
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
      tables_.floats("weights_" + text(block), state_.values<float>(convolutions_[block]->name + ".weights",
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
  std::vector<const LayerRecord*> convolutions_;  // of the model's description
  std::vector<std::string> norms_, signs_;        // their names; the first convolution takes no signs
  std::string dense_;
  SampleShape input_;
  const State state_;
  CTables tables_;
  std::string functions_, calls_;
  size_t ram_ = 0;
};

bool is_plain(const ConvolutionKernel& kernel) {
  return kernel.side == 3 && kernel.stride == 1 && !kernel.valid;
}

}  // namespace

bool is_pooled_blocks(const Architecture& architecture) {
  std::span<const LayerRecord> records = architecture.layers;
  const auto take = [&](LayerKind kind) {
    const bool found = !records.empty() && records[0].kind == kind;
    if (found) records = records.subspan(1);
    return found;
  };
  const bool binary = records[0].sign_weights;
  for (size_t block = 0; block < 4; ++block) {
    if (binary && block > 0 && !take(LayerKind::kSigns)) return false;
    if (records.size() < 5 || !is_plain(records[0].kernel) || records[0].sign_weights != binary ||
        records[2].activation != (binary ? Activation::kHardtanh : Activation::kRelu) ||
        records[3].window != 2)
      return false;
    if (!take(LayerKind::kConvolution) || !take(LayerKind::kNorm) || !take(LayerKind::kActivation) ||
        !take(LayerKind::kMaxPool))
      return false;
  }
  return records.size() == 1 && records[0].kind == LayerKind::kDense;
}

CBody pooled_blocks_body(const NetworkModel& model) {
  return PooledBlocksWriter(model).write();
}

}  // namespace bitfed
