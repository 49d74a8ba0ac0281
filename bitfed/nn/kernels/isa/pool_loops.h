// Batch norm with pooling; a part of loops.h.

void moments(const float* x, size_t rows, size_t columns, float* mean, float* variance) {
  for_each_block(columns, [&](auto blocks, size_t column) {
    moments_of_blocks<blocks.kBlocks>(x + column, rows, columns, mean + column, variance + column);
  });
}

// The pixels of a window, negated where the factor is below 0: x * factor is largest for the largest of them.
struct Window {
  Lanes a, b, c, d;
  Lanes largest() const { return larger(larger(a, b), larger(c, d)); }
};

inline Lanes direction(Lanes factor) {
  return where_at_least(factor, all(0.0f), all(1.0f), all(-1.0f));
}

inline Window window_at(const float* upper, const float* lower, size_t channels, Lanes toward) {
  return {load(upper) * toward, load(upper + channels) * toward, load(lower) * toward,
          load(lower + channels) * toward};
}

template <Activation kActivation>
inline void norm_pool_as(const NormPool& p, const PoolSteps& offsets, float* out) {
  const size_t row = p.width * p.channels;
  float* keep = p.chosen;
  for (size_t image = 0; image < p.images; ++image) {
    for (size_t y = 0; y < p.height / 2; ++y) {
      const float* upper = p.x + (image * p.height + 2 * y) * row;
      float* to = out + image * offsets.image_step + y * offsets.row_step;
      for (size_t i = 0; i < p.width / 2; ++i, upper += 2 * p.channels, to += p.channels) {
        for (size_t c = 0; c < p.channels; c += kLanes) {
          const Lanes factor = load(p.factor + c);
          const Lanes toward = direction(factor);
          const Lanes chosen = window_at(upper + c, upper + row + c, p.channels, toward).largest() * toward;
          store(to + c, activate<kActivation>(chosen * factor + load(p.shift + c)));
          if (keep != nullptr) store(keep + c, chosen);
        }
        if (keep != nullptr) keep += p.channels;
      }
    }
  }
}

void norm_pool(const NormPool& p, const PoolSteps& offsets, float* out) {
  if (p.activation == Activation::kRelu) return norm_pool_as<Activation::kRelu>(p, offsets, out);
  if (p.activation == Activation::kHardtanh) return norm_pool_as<Activation::kHardtanh>(p, offsets, out);
  if (p.activation == Activation::kSign) return norm_pool_as<Activation::kSign>(p, offsets, out);
  norm_pool_as<Activation::kNone>(p, offsets, out);
}

// Image by image: each is read from memory once, and sums stay short.
template <Activation kActivation>
inline void norm_pool_sums_as(const NormPool& p, const NormPoolSums& s) {
  const size_t image_floats = p.windows() * p.channels;
  for (size_t c = 0; c < p.channels; c += kLanes) {
    store(s.sum + c, all(0.0f));
    store(s.along + c, all(0.0f));
  }
  for (size_t image = 0; image < p.images; ++image) {
    for (size_t c = 0; c < p.channels; c += kLanes) {
      const Lanes factor = load(p.factor + c);
      const Lanes shift = load(p.shift + c);
      const Lanes mean = load(s.mean + c);
      const Lanes inverse = load(s.inverse_std + c);
      Lanes sum = all(0.0f);
      Lanes along = all(0.0f);
      for (size_t i = 0; i < image_floats; i += p.channels) {
        const size_t at = image * image_floats + i + c;
        const Lanes chosen = load(p.chosen + at);
        const Lanes gradient = pass_gradient<kActivation>(load(s.gradient + at), chosen * factor + shift);
        sum = sum + gradient;
        along = fma(gradient, (chosen - mean) * inverse, along);
      }
      store(s.sum + c, load(s.sum + c) + sum);
      store(s.along + c, load(s.along + c) + along);
    }
  }
}

void norm_pool_sums(const NormPool& p, const NormPoolSums& s) {
  if (passes_within_one(p.activation)) return norm_pool_sums_as<Activation::kHardtanh>(p, s);
  if (p.activation == Activation::kRelu) return norm_pool_sums_as<Activation::kRelu>(p, s);
  norm_pool_sums_as<Activation::kNone>(p, s);
}

// Pixels outside of all windows, in a last odd row or column.
inline void unpooled_back(const NormPool& p, const NormPoolBackward& b, size_t at, size_t pixels) {
  for (size_t i = 0; i < pixels; ++i, at += p.channels) {
    for (size_t c = 0; c < p.channels; c += kLanes)
      store(b.x_gradient + at + c, fma(load(p.x + at + c), load(b.slope + c), load(b.offset + c)));
  }
}

template <Activation kActivation>
inline void norm_pool_backward_as(const NormPool& p, const NormPoolBackward& b) {
  const size_t row = p.width * p.channels;
  const size_t pair = 2 * p.channels;
  const Lanes none = all(0.0f);
  const float* from = b.gradient;
  for (size_t image = 0; image < p.images; ++image) {
    for (size_t y = 0; y < p.height / 2; ++y) {
      size_t upper = (image * p.height + 2 * y) * row;
      for (size_t i = 0; i < p.width / 2; ++i, upper += pair, from += p.channels) {
        for (size_t c = 0; c < p.channels; c += kLanes) {
          const Lanes factor = load(p.factor + c);
          const Lanes toward = direction(factor);
          const Lanes slope = load(b.slope + c);
          const Lanes offset = load(b.offset + c);
          const size_t left = upper + c;
          const size_t right = left + p.channels;
          const Window window = window_at(p.x + left, p.x + left + row, p.channels, toward);
          const Lanes largest = window.largest();
          const Lanes before = largest * toward * factor + load(p.shift + c);
          Lanes rest = pass_gradient<kActivation>(load(from + c), before) * factor;
          const auto give = [&](Lanes pixel, size_t at) {
            const Lanes whole = fma(load(p.x + at), slope, offset);
            store(b.x_gradient + at, whole + where_at_least(pixel, largest, rest, none));
            rest = where_at_least(pixel, largest, none, rest);
          };
          give(window.a, left);
          give(window.b, right);
          give(window.c, left + row);
          give(window.d, right + row);
        }
      }
      if (p.width % 2 != 0) {
        unpooled_back(p, b, upper, 1);
        unpooled_back(p, b, upper + row, 1);
      }
    }
    if (p.height % 2 != 0) unpooled_back(p, b, ((image + 1) * p.height - 1) * row, p.width);
  }
}

void norm_pool_backward(const NormPool& p, const NormPoolBackward& b) {
  if (passes_within_one(p.activation)) return norm_pool_backward_as<Activation::kHardtanh>(p, b);
  if (p.activation == Activation::kRelu) return norm_pool_backward_as<Activation::kRelu>(p, b);
  norm_pool_backward_as<Activation::kNone>(p, b);
}

// Of values that are not numbers or equal the first remains.
template <Activation kActivation>
inline Window biased_window(const BiasPool& p, const float* upper, Lanes bias) {
  const float* lower = upper + p.width * p.channels;
  return {activate<kActivation>(load(upper) + bias), activate<kActivation>(load(upper + p.channels) + bias),
          activate<kActivation>(load(lower) + bias), activate<kActivation>(load(lower + p.channels) + bias)};
}

inline Lanes first_largest(const Window& w) {
  return larger(w.d, larger(w.c, larger(w.b, w.a)));
}

// work(window, its first pixel's offset in x)
template <Activation kActivation, typename Work>
inline void for_each_biased_window(const BiasPool& p, const Work& work) {
  for (size_t y = 0; y + 2 <= p.height; y += 2) {
    for (size_t x = 0; x + 2 <= p.width; x += 2) {
      for (size_t c = 0; c < p.channels; c += kLanes) {
        const size_t at = (y * p.width + x) * p.channels + c;
        work(biased_window<kActivation>(p, p.x + at, load(p.bias + c)), at);
      }
    }
  }
}

template <Activation kActivation>
inline void bias_pool_as(const BiasPool& p, float* out) {
  for_each_biased_window<kActivation>(p, [&](const Window& window, size_t) {
    store(out, first_largest(window));
    out += kLanes;
  });
}

void bias_pool(const BiasPool& p, float* out) {
  if (p.activation == Activation::kRelu) return bias_pool_as<Activation::kRelu>(p, out);
  if (p.activation == Activation::kHardtanh) return bias_pool_as<Activation::kHardtanh>(p, out);
  bias_pool_as<Activation::kNone>(p, out);
}

template <Activation kActivation>
inline void bias_pool_backward_as(const BiasPool& p, const float* gradient, ClipBounds bounds, float* to) {
  const size_t row = p.width * p.channels;
  const Lanes none = all(0.0f);
  for_each_biased_window<kActivation>(p, [&](const Window& window, size_t at) {
    const Lanes largest = first_largest(window);
    Lanes rest = pass_within(bounds, largest, load(gradient));
    gradient += kLanes;
    const auto give = [&](Lanes pixel, size_t pixel_at) {
      store(to + pixel_at, where_at_least(pixel, largest, rest, none));
      rest = where_at_least(pixel, largest, none, rest);
    };
    give(window.a, at);
    give(window.b, at + p.channels);
    give(window.c, at + row);
    give(window.d, at + row + p.channels);
  });
  // Pixels outside of all windows.
  for (size_t y = 0; p.width % 2 != 0 && y < p.height; ++y) {
    for (size_t c = 0; c < p.channels; c += kLanes) store(to + (y + 1) * row - p.channels + c, none);
  }
  for (size_t i = 0; p.height % 2 != 0 && i < row; i += kLanes) store(to + (p.height - 1) * row + i, none);
}

void bias_pool_backward(const BiasPool& p, const float* gradient, ClipBounds bounds, float* to) {
  if (p.activation == Activation::kRelu)
    return bias_pool_backward_as<Activation::kRelu>(p, gradient, bounds, to);
  if (p.activation == Activation::kHardtanh)
    return bias_pool_backward_as<Activation::kHardtanh>(p, gradient, bounds, to);
  bias_pool_backward_as<Activation::kNone>(p, gradient, bounds, to);
}
