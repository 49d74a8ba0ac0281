// A convolutional network as C. A block goes from pixel to pixel behind its pool: the four sums, batch norm,
// the activation and the largest of them, so that no image of the full size is ever held. Binary: between
// blocks stand the signs of the values about their mean, (x - mean) / deviation >= 0 being x >= mean. Sums
// have the order of the network's kernels: by row and column of the kernel, then channel.

#include <fmt/format.h>

#include <algorithm>

#include "bitfed/base/error.h"
#include "bitfed/edge/c_body.h"
#include "bitfed/edge/c_functions.h"
#include "bitfed/edge/c_text.h"
#include "bitfed/nn/folded_norm.h"

namespace bitfed {
namespace {

constexpr const char* kPixels = R"(
/* The 3 x 3 inputs about a pixel, zeros beyond the border. */
static void pixels_about(const @name@_input *pixels, int y, int x, float *taps) {
  int ky, kx, c;
  for (ky = y - 1; ky <= y + 1; ++ky) {
    for (kx = x - 1; kx <= x + 1; ++kx) {
      const int inside = ky >= 0 && ky < @height@ && kx >= 0 && kx < @width@;
      for (c = 0; c < @channels@; ++c)
        *taps++ = inside ? inputs[c * 256 + pixels[(ky * @width@ + kx) * @channels@ + c]] : 0;
    }
  }
}
)";

constexpr const char* kBinary = R"(
static float values[@values@];
static uint32_t signs[@sign_words@];

static float activated(float sum, float factor, float offset) {
  float x = sum * factor;
  x = x + offset;
  x = x < 1 ? x : 1;
  return x > -1 ? x : -1;
}

static void first_block(const @name@_input *pixels) {
  float taps[@taps@];
  int y, x, corner, o, k;
  for (y = 0; y < @half_height@; ++y) {
    for (x = 0; x < @half_width@; ++x) {
      float *out = values + (y * @half_width@ + x) * @filters@;
      for (corner = 0; corner < 4; ++corner) {
        pixels_about(pixels, 2 * y + corner / 2, 2 * x + corner % 2, taps);
        for (o = 0; o < @filters@; ++o) {
          const uint32_t *weights = weights_0 + o * @tap_words@;
          float sum = 0;
          for (k = 0; k < @taps@; ++k) {
            if ((weights[k >> 5] >> (k & 31) & 1) != 0) {
              sum += taps[k];
            } else {
              sum -= taps[k];
            }
          }
          sum = activated(sum, factor_0[o], offset_0[o]);
          if (corner == 0 || sum > out[o]) out[o] = sum;
        }
      }
    }
  }
}

/* The signs of the values about their mean, those of a pixel in whole words. */
static void take_signs(int pixels, int channels) {
  const int count = pixels * channels;
  const float *from = values;
  uint32_t *to = signs;
  double sums[16] = {0};
  float mean;
  int i, c, half;
  for (i = 0; i < count; ++i) sums[i & 15] += values[i];
  for (half = 8; half > 0; half /= 2) {
    for (i = 0; i < half; ++i) sums[i] += sums[i + half];
  }
  mean = (float)(sums[0] / count);
  for (i = 0; i < pixels; ++i) {
    for (c = 0; c < channels; ++c) {
      if ((c & 31) == 0) to[c >> 5] = 0;
      to[c >> 5] |= (uint32_t)(*from++ >= mean) << (c & 31);
    }
    to += (channels + 31) / 32;
  }
}

/* The sum of a filter about a pixel: so many signs agree as do not differ. */
static float sum_about(int y, int x, int height, int width, int channels, const uint32_t *weights) {
  const int words = (channels + 31) / 32;
  int taps = 0;
  int differing = 0;
  int ky, kx, w;
  for (ky = y - 1; ky <= y + 1; ++ky) {
    for (kx = x - 1; kx <= x + 1; ++kx, weights += words) {
      const uint32_t *about = signs + (ky * width + kx) * words;
      if (ky < 0 || ky >= height || kx < 0 || kx >= width) continue;
      for (w = 0; w < words; ++w) differing += ones(about[w] ^ weights[w]);
      ++taps;
    }
  }
  return (float)(taps * channels - 2 * differing);
}

static void block(int height, int width, int channels, int filters, const uint32_t *weights, const float *factor,
                  const float *offset) {
  const int filter_words = 9 * ((channels + 31) / 32);
  float *out = values;
  int y, x, o, corner;
  for (y = 0; y + 1 < height; y += 2) {
    for (x = 0; x + 1 < width; x += 2) {
      for (o = 0; o < filters; ++o, ++out) {
        for (corner = 0; corner < 4; ++corner) {
          float sum = sum_about(y + corner / 2, x + corner % 2, height, width, channels, weights + o * filter_words);
          sum = activated(sum, factor[o], offset[o]);
          if (corner == 0 || sum > *out) *out = sum;
        }
      }
    }
  }
}
)";

constexpr const char* kReal = R"(
static float values[2][@values@];

static float activated(float sum, float factor, float offset) {
  const float x = sum * factor;
  const float shifted = x + offset;
  return shifted > 0 ? shifted : 0;
}

static void values_about(const float *from, int y, int x, int height, int width, int channels, float *taps) {
  int ky, kx, c;
  for (ky = y - 1; ky <= y + 1; ++ky) {
    for (kx = x - 1; kx <= x + 1; ++kx) {
      const int inside = ky >= 0 && ky < height && kx >= 0 && kx < width;
      for (c = 0; c < channels; ++c) *taps++ = inside ? from[(ky * width + kx) * channels + c] : 0;
    }
  }
}

/* Of the pixels where they are given, else of the values. */
static void block(const @name@_input *pixels, const float *from, int height, int width, int channels, int filters,
                  const float *weights, const float *factor, const float *offset, float *out) {
  static float taps[@taps@];
  int y, x, corner, o, k;
  for (y = 0; y + 1 < height; y += 2) {
    for (x = 0; x + 1 < width; x += 2, out += filters) {
      for (corner = 0; corner < 4; ++corner) {
        if (pixels) {
          pixels_about(pixels, y + corner / 2, x + corner % 2, taps);
        } else {
          values_about(from, y + corner / 2, x + corner % 2, height, width, channels, taps);
        }
        for (o = 0; o < filters; ++o) {
          float sum = 0;
          for (k = 0; k < 9 * channels; ++k) sum = fused(taps[k], weights[k * filters + o], sum);
          sum = activated(sum, factor[o], offset[o]);
          if (corner == 0 || sum > out[o]) out[o] = sum;
        }
      }
    }
  }
}
)";

constexpr const char* kDense = R"(
static void dense(const float *from, float *scores) {
  int i, k;
  for (k = 0; k < @classes@; ++k) {
    scores[k] = 0;
    for (i = 0; i < @inputs@; ++i) scores[k] = fused(from[i], dense_weights[i * @classes@ + k], scores[k]);
  }
}
)";

class NetworkWriter {
 public:
  explicit NetworkWriter(const NetworkModel& model)
      : spec_(model.spec()), input_(input_of_model(model)), state_(model.state()) {}

  CBody write() {
    if (spec_.name != "cnn4")
      throw input_error("--format c: found {}; of the networks only cnn4 can be written as C", spec_.name);
    add_inputs();
    spec_.binary ? add_binary_blocks() : add_real_blocks();
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

  // What an input pixel is to the network, for all 256 of each channel.
  void add_inputs() {
    std::vector<float> inputs;
    for (size_t c = 0; c < spec_.channels; ++c) {
      for (int pixel = 0; pixel < 256; ++pixel)
        inputs.push_back(input_of(spec_, static_cast<uint8_t>(pixel), c));
    }
    tables_.floats("inputs", inputs);
    functions_ += filled(kPixels, {{"height", text(spec_.height)},
                                   {"width", text(spec_.image_width)},
                                   {"channels", text(spec_.channels)}});
  }

  void add_norm(size_t block) {
    const std::string name = fmt::format("blocks.{}.norm.", block);
    const auto numbers = [&](const char* what) {
      return state_.values<float>(name + what, {1, filters(block)});
    };
    const FoldedNorm norm =
        fold_norm(numbers("scale"), numbers("shift"), numbers("mean"), numbers("variance"));
    tables_.floats("factor_" + text(block), norm.factor);
    tables_.floats("offset_" + text(block), norm.offset);
  }

  // A row of words a filter; in it `piece` inputs at a time begin at whole words.
  void add_signs(size_t block, size_t piece) {
    const std::string name = fmt::format("blocks.{}.convolution.weights", block);
    const auto bits = state_.values<uint8_t>(name, {State::kAny});
    const size_t inputs = 9 * channels(block);
    const size_t words = inputs / piece * ((piece + 31) / 32);
    std::vector<uint32_t> weights(filters(block) * words);
    for (size_t i = 0; i < inputs; ++i) {
      const size_t place = i / piece * ((piece + 31) / 32) * 32 + i % piece;
      for (size_t o = 0; o < filters(block); ++o) {
        const size_t k = i * filters(block) + o;
        if ((bits[k / 8] >> (k % 8) & 1) != 0) weights[o * words + place / 32] |= uint32_t{1} << (place % 32);
      }
    }
    tables_.words("weights_" + text(block), weights);
  }

  void add_dense(const std::string& from) {
    tables_.floats("dense_weights", state_.values<float>("dense.weights", {State::kAny, State::kAny}));
    functions_ += filled(kDense, {{"inputs", text(values_behind(3))}, {"classes", text(spec_.classes)}});
    calls_ += fmt::format("  dense({}, scores);\n", from);
  }

  void add_binary_blocks() {
    size_t values = 0;
    size_t sign_words = 0;
    for (size_t block = 0; block < kBlocks; ++block) {
      values = std::max(values, values_behind(block));
      sign_words = std::max(sign_words, height(block + 1) * width(block + 1) * ((filters(block) + 31) / 32));
      add_signs(block, block == 0 ? 9 * channels(0) : channels(block));
      add_norm(block);
      if (block == 0) {
        calls_ += "  first_block(input);\n";
        continue;
      }
      calls_ +=
          fmt::format("  take_signs({}, {});\n  block({}, {}, {}, {}, weights_{}, factor_{}, offset_{});\n",
                      height(block) * width(block), channels(block), height(block), width(block),
                      channels(block), filters(block), block, block, block);
    }
    functions_ += kCOnes + filled(kBinary, {{"values", text(values)},
                                            {"sign_words", text(sign_words)},
                                            {"half_height", text(height(1))},
                                            {"half_width", text(width(1))},
                                            {"filters", text(filters(0))},
                                            {"taps", text(9 * channels(0))},
                                            {"tap_words", text((9 * channels(0) + 31) / 32)}});
    functions_ += kCFused;
    ram_ = 4 * (values + sign_words);
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
    functions_ += kCFused + filled(kReal, {{"values", text(values)}, {"taps", text(taps)}});
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
