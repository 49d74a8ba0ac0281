#pragma once

namespace bitfed {

// The C functions of networks layer by layer. Values lie row by row, pixel by pixel, then channel; the signs
// of a pixel's channels in whole words.

inline constexpr const char* kCLoad = R"(
static void load(const @name@_input *pixels, float *to) {
  int i;
  for (i = 0; i < @count@; ++i) to[i] = inputs[i % @channels@ * 256 + pixels[i]];
}
)";

// The geometry of a convolution: `pad` rows and columns of zeros about the image.
inline constexpr const char* kCGeometry = R"(
typedef struct {
  int height, width, channels, side, stride, pad, out_height, out_width, filters;
} geometry;
)";

inline constexpr const char* kCRealConvolution = R"(
/* Weights by row and column of the kernel, channel, then filter. */
static void convolve(const geometry *g, const float *from, const float *weights, float *to) {
  int y, x, ky, kx, c, o;
  for (y = 0; y < g->out_height; ++y) {
    for (x = 0; x < g->out_width; ++x, to += g->filters) {
      for (o = 0; o < g->filters; ++o) to[o] = 0;
      for (ky = 0; ky < g->side; ++ky) {
        for (kx = 0; kx < g->side; ++kx) {
          const int row = y * g->stride + ky - g->pad;
          const int column = x * g->stride + kx - g->pad;
          const float *pixel = from + (row * g->width + column) * g->channels;
          const float *tap = weights + (ky * g->side + kx) * g->channels * g->filters;
          if (row < 0 || row >= g->height || column < 0 || column >= g->width) continue;
          for (c = 0; c < g->channels; ++c, tap += g->filters) {
            for (o = 0; o < g->filters; ++o) to[o] = fused(pixel[c], tap[o], to[o]);
          }
        }
      }
    }
  }
}
)";

inline constexpr const char* kCSignWeightConvolution = R"(
/* The same with weights of +1 and -1: bits in the same order. */
static void convolve_by_signs(const geometry *g, const float *from, const uint32_t *weights, float *to) {
  int y, x, ky, kx, c, o;
  for (y = 0; y < g->out_height; ++y) {
    for (x = 0; x < g->out_width; ++x, to += g->filters) {
      for (o = 0; o < g->filters; ++o) to[o] = 0;
      for (ky = 0; ky < g->side; ++ky) {
        for (kx = 0; kx < g->side; ++kx) {
          const int row = y * g->stride + ky - g->pad;
          const int column = x * g->stride + kx - g->pad;
          const float *pixel = from + (row * g->width + column) * g->channels;
          uint32_t bit = (uint32_t)((ky * g->side + kx) * g->channels) * (uint32_t)g->filters;
          if (row < 0 || row >= g->height || column < 0 || column >= g->width) continue;
          for (c = 0; c < g->channels; ++c) {
            for (o = 0; o < g->filters; ++o, ++bit)
              to[o] += (weights[bit >> 5] >> (bit & 31) & 1) != 0 ? pixel[c] : -pixel[c];
          }
        }
      }
    }
  }
}
)";

inline constexpr const char* kCSignConvolution = R"(
/* Signs by signs: as many agree as do not differ. Weights by filter, row and column of the kernel, in whole words. */
static void convolve_signs(const geometry *g, const uint32_t *from, const uint32_t *weights, float *to) {
  const int words = (g->channels + 31) / 32;
  int y, x, ky, kx, w, o;
  for (y = 0; y < g->out_height; ++y) {
    for (x = 0; x < g->out_width; ++x) {
      const uint32_t *filter = weights;
      for (o = 0; o < g->filters; ++o) {
        int taps = 0;
        int differing = 0;
        for (ky = 0; ky < g->side; ++ky) {
          for (kx = 0; kx < g->side; ++kx, filter += words) {
            const int row = y * g->stride + ky - g->pad;
            const int column = x * g->stride + kx - g->pad;
            const uint32_t *pixel = from + (row * g->width + column) * words;
            if (row < 0 || row >= g->height || column < 0 || column >= g->width) continue;
            for (w = 0; w < words; ++w) differing += ones(pixel[w] ^ filter[w]);
            ++taps;
          }
        }
        *to++ = (float)(taps * g->channels - 2 * differing);
      }
    }
  }
}
)";

inline constexpr const char* kCTakeSigns = R"(
static uint32_t signs[@sign_words@];

static void signs_about(float mean, const float *from, int pixels, int channels) {
  uint32_t *to = signs;
  int i, c;
  for (i = 0; i < pixels; ++i, to += (channels + 31) / 32) {
    for (c = 0; c < channels; ++c) {
      if ((c & 31) == 0) to[c >> 5] = 0;
      to[c >> 5] |= (uint32_t)(*from++ >= mean) << (c & 31);
    }
  }
}
)";

inline constexpr const char* kCImageMean = R"(
static float image_mean(const float *from, int count) {
  double sums[16] = {0};
  int i, half;
  for (i = 0; i < count; ++i) sums[i & 15] += from[i];
  for (half = 8; half > 0; half /= 2) {
    for (i = 0; i < half; ++i) sums[i] += sums[i + half];
  }
  return (float)(sums[0] / count);
}
)";

inline constexpr const char* kCAffine = R"(
static void affine(float *x, int pixels, int channels, const float *factor, const float *offset) {
  int i, c;
  for (i = 0; i < pixels; ++i) {
    for (c = 0; c < channels; ++c, ++x) {
      const float product = *x * factor[c];
      *x = product + offset[c];
    }
  }
}
)";

inline constexpr const char* kCBias = R"(
static void add_bias(float *x, int pixels, int channels, const float *bias) {
  int i, c;
  for (i = 0; i < pixels; ++i) {
    for (c = 0; c < channels; ++c) *x++ += bias[c];
  }
}
)";

inline constexpr const char* kCRelu = R"(
static void relu(float *x, int count) {
  int i;
  for (i = 0; i < count; ++i) x[i] = x[i] > 0 ? x[i] : 0;
}
)";

inline constexpr const char* kCHardtanh = R"(
static void hardtanh(float *x, int count) {
  int i;
  for (i = 0; i < count; ++i) {
    x[i] = x[i] < 1 ? x[i] : 1;
    x[i] = x[i] > -1 ? x[i] : -1;
  }
}
)";

inline constexpr const char* kCMaxPool = R"(
static void max_pool(const float *from, int height, int width, int channels, int window, float *to) {
  int y, x, i, c;
  for (y = 0; y < height / window; ++y) {
    for (x = 0; x < width / window; ++x, to += channels) {
      for (i = 0; i < window * window; ++i) {
        const float *pixel = from + ((y * window + i / window) * width + x * window + i % window) * channels;
        for (c = 0; c < channels; ++c) {
          if (i == 0 || pixel[c] > to[c]) to[c] = pixel[c];
        }
      }
    }
  }
}
)";

inline constexpr const char* kCAveragePool = R"(
static void average_pool(const float *from, int width, int channels, int high, int wide, int rows, int columns,
                         float *to) {
  int y, x, i, c;
  for (y = 0; y < rows; ++y) {
    for (x = 0; x < columns; ++x, to += channels) {
      for (c = 0; c < channels; ++c) to[c] = 0;
      for (i = 0; i < high * wide; ++i) {
        const float *pixel = from + ((y * high + i / wide) * width + x * wide + i % wide) * channels;
        for (c = 0; c < channels; ++c) to[c] += pixel[c];
      }
      for (c = 0; c < channels; ++c) to[c] /= (float)(high * wide);
    }
  }
}
)";

inline constexpr const char* kCDenseLayer = R"(
static void dense(const float *from, int inputs, int units, const float *weights, float *to) {
  int i, k;
  for (k = 0; k < units; ++k) {
    to[k] = 0;
    for (i = 0; i < inputs; ++i) to[k] = fused(from[i], weights[i * units + k], to[k]);
  }
}
)";

inline constexpr const char* kCAdd = R"(
static void add(float *x, const float *y, int count) {
  int i;
  for (i = 0; i < count; ++i) x[i] += y[i];
}
)";

}  // namespace bitfed
