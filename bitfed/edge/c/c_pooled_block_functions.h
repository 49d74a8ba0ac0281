#pragma once

namespace bitfed {

// The C functions of networks of pooled blocks.

inline constexpr const char* kCPixels = R"(
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

inline constexpr const char* kCSums = R"(
static float activated(float sum, float factor, float offset) {
  float x = sum * factor;
  x = x + offset;
  x = x < 1 ? x : 1;
  return x > -1 ? x : -1;
}

/* The sum of a filter about a pixel: so many signs agree as do not differ. */
static int sum_about(const uint32_t *signs, int y, int x, int height, int width, int channels,
                     const uint32_t *weights) {
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
  return taps * channels - 2 * differing;
}

static float values[@values@];

/* From signs to values. */
static void block(const uint32_t *from, int height, int width, int channels, int filters, const uint32_t *weights,
                  const float *factor, const float *offset) {
  const int filter_words = 9 * ((channels + 31) / 32);
  float *out = values;
  int y, x, o, corner;
  for (y = 0; y + 1 < height; y += 2) {
    for (x = 0; x + 1 < width; x += 2) {
      for (o = 0; o < filters; ++o, ++out) {
        for (corner = 0; corner < 4; ++corner) {
          float sum = (float)sum_about(from, y + corner / 2, x + corner % 2, height, width, channels,
                                       weights + o * filter_words);
          sum = activated(sum, factor[o], offset[o]);
          if (corner == 0 || sum > *out) *out = sum;
        }
      }
    }
  }
}
)";

// Signs about the mean of an image's values, which are all there before the first sign is.
inline constexpr const char* kCImageSigns = R"(
static uint32_t signs[@sign_words@];

static void first_block(const @name@_input *pixels) {
  float taps[@taps@];
  int y, x, corner, o;
  for (y = 0; y < @half_height@; ++y) {
    for (x = 0; x < @half_width@; ++x) {
      float *out = values + (y * @half_width@ + x) * @filters@;
      for (corner = 0; corner < 4; ++corner) {
        pixels_about(pixels, 2 * y + corner / 2, 2 * x + corner % 2, taps);
        for (o = 0; o < @filters@; ++o) {
          float sum = signed_sum(taps, @taps@, weights_0 + o * @tap_words@);
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
)";

// Signs by thresholds: a pool's is 1 if one of its four sums reaches the filter's.
inline constexpr const char* kCStaticSigns = R"(
/* What blocks hand on to the next, in turns: signs, those of a pixel in whole words. */
static uint32_t signs_0[@sign_words@];
static uint32_t signs_1[@second_sign_words@];

static void first_block(const @name@_input *pixels) {
  float taps[@taps@];
  uint32_t *to = signs_0;
  int y, x, corner, o;
  for (y = 0; y < @half_height@; ++y) {
    for (x = 0; x < @half_width@; ++x, to += @filter_words@) {
      for (o = 0; o < @filter_words@; ++o) to[o] = 0;
      for (corner = 0; corner < 4; ++corner) {
        pixels_about(pixels, 2 * y + corner / 2, 2 * x + corner % 2, taps);
        for (o = 0; o < @filters@; ++o) {
          if ((to[o >> 5] >> (o & 31) & 1) != 0) continue;
          to[o >> 5] |= (uint32_t)(signed_sum(taps, @taps@, weights_0 + o * @tap_words@) >= least_0[o]) << (o & 31);
        }
      }
    }
  }
}

/* From signs to signs. */
static void sign_block(const uint32_t *from, int height, int width, int channels, int filters, const uint32_t *weights,
                       const int32_t *least, uint32_t *to) {
  const int filter_words = 9 * ((channels + 31) / 32);
  int y, x, o, corner;
  for (y = 0; y + 1 < height; y += 2) {
    for (x = 0; x + 1 < width; x += 2, to += (filters + 31) / 32) {
      for (o = 0; o < filters; ++o) {
        uint32_t on = 0;
        for (corner = 0; corner < 4 && on == 0; ++corner)
          on = sum_about(from, y + corner / 2, x + corner % 2, height, width, channels, weights + o * filter_words) >=
               least[o];
        if ((o & 31) == 0) to[o >> 5] = 0;
        to[o >> 5] |= on << (o & 31);
      }
    }
  }
}
)";

inline constexpr const char* kCReal = R"(
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

inline constexpr const char* kCDense = R"(
static void dense(const float *from, float *scores) {
  int i, k;
  for (k = 0; k < @classes@; ++k) {
    scores[k] = 0;
    for (i = 0; i < @inputs@; ++i) scores[k] = fused(from[i], dense_weights[i * @classes@ + k], scores[k]);
  }
}
)";

}  // namespace bitfed
