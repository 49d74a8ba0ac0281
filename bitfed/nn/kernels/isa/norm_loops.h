// Batch norm, and functions that other loops share with it; a part of loops.h.

template <int kCount>
struct Blocks {
  static constexpr int kBlocks = kCount;
};

// work(blocks, column): as many blocks of columns at a time as a unit has registers for.
template <typename Work>
inline void for_each_block(size_t columns, const Work& work) {
  size_t column = 0;
  if constexpr (kColumnBlocks >= 4) {
    for (; column + 4 * kLanes <= columns; column += 4 * kLanes) work(Blocks<4>(), column);
  }
  if constexpr (kColumnBlocks >= 2) {
    for (; column + 2 * kLanes <= columns; column += 2 * kLanes) work(Blocks<2>(), column);
  }
  for (; column < columns; column += kLanes) work(Blocks<1>(), column);
}

inline bool is_streamed(size_t count) {
  return count * sizeof(float) >= kStreamedBytes;
}

// Sums of columns, see kNormRun: add(row, sums) for every row; several blocks of columns at a time hide the
// latency of additions.
template <int kSums, int kBlocks>
struct ColumnSums {
  Lanes of[kSums][kBlocks];

  ColumnSums() {
#pragma GCC unroll 2
    for (int s = 0; s < kSums; ++s) {
#pragma GCC unroll 4
      for (int b = 0; b < kBlocks; ++b) of[s][b] = all(0.0f);
    }
  }
  void add(const ColumnSums& other) {
#pragma GCC unroll 2
    for (int s = 0; s < kSums; ++s) {
#pragma GCC unroll 4
      for (int b = 0; b < kBlocks; ++b) of[s][b] = of[s][b] + other.of[s][b];
    }
  }
};

template <int kSums, int kBlocks, typename Add>
inline ColumnSums<kSums, kBlocks> sum_columns(size_t rows, const Add& add) {
  ColumnSums<kSums, kBlocks> sums;
  for (size_t first = 0; first < rows; first += kNormRun * kNormRunsTogether) {
    ColumnSums<kSums, kBlocks> together;
    for (size_t run = first; run < first + kNormRun * kNormRunsTogether && run < rows; run += kNormRun) {
      ColumnSums<kSums, kBlocks> own;
      for (size_t r = run; r < run + kNormRun && r < rows; ++r) add(r, &own);
      together.add(own);
    }
    sums.add(together);
  }
  return sums;
}

template <int kBlocks>
inline void moments_of_blocks(const float* x, size_t rows, size_t columns, float* mean, float* variance) {
  const Lanes count = all(static_cast<float>(rows));
  // Sums of differences to the first row: a large common offset cancels before it is squared.
  Lanes pivot[kBlocks];
#pragma GCC unroll 4
  for (int b = 0; b < kBlocks; ++b) pivot[b] = load(x + b * kLanes);
  using Both = ColumnSums<2, kBlocks>;  // of differences, of their squares
  const Both sums = sum_columns<2, kBlocks>(rows, [&](size_t r, Both* to) {
#pragma GCC unroll 4
    for (int b = 0; b < kBlocks; ++b) {
      const Lanes difference = load(x + r * columns + b * kLanes) - pivot[b];
      to->of[0][b] = to->of[0][b] + difference;
      to->of[1][b] = fma(difference, difference, to->of[1][b]);
    }
  });
#pragma GCC unroll 4
  for (int b = 0; b < kBlocks; ++b) {
    const Lanes away = sums.of[0][b] / count;
    store(mean + b * kLanes, pivot[b] + away);
    store(variance + b * kLanes, larger(sums.of[1][b] / count - away * away, all(0.0f)));
  }
}

template <int kBlocks>
inline void norm_statistics(const NormForward& n, size_t column) {
  const Lanes count = all(static_cast<float>(n.rows));
  const float* x = n.x + column;
  using One = ColumnSums<1, kBlocks>;
  const One sums = sum_columns<1, kBlocks>(n.rows, [&](size_t r, One* to) {
#pragma GCC unroll 4
    for (int b = 0; b < kBlocks; ++b) to->of[0][b] = to->of[0][b] + load(x + r * n.columns + b * kLanes);
  });
  Lanes mean[kBlocks];
#pragma GCC unroll 4
  for (int b = 0; b < kBlocks; ++b) mean[b] = sums.of[0][b] / count;
  const One squares = sum_columns<1, kBlocks>(n.rows, [&](size_t r, One* to) {
#pragma GCC unroll 4
    for (int b = 0; b < kBlocks; ++b) {
      const Lanes difference = load(x + r * n.columns + b * kLanes) - mean[b];
      to->of[0][b] = fma(difference, difference, to->of[0][b]);
    }
  });
#pragma GCC unroll 4
  for (int b = 0; b < kBlocks; ++b) {
    store(n.mean + column + b * kLanes, mean[b]);
    store(n.variance + column + b * kLanes, squares.of[0][b] / count);
  }
}

// With kStreams, a non-temporal store: for outputs that would be evicted before they are read.
template <bool kStreams>
inline void put(float* p, Lanes x) {
  if constexpr (kStreams) return stream(p, x);
  store(p, x);
}

template <Activation kActivation, int kBlocks, bool kStreams>
inline void normalise_blocks(const NormForward& n, size_t column) {
  Lanes mean[kBlocks];
  Lanes inverse[kBlocks];
  Lanes scale[kBlocks];
  Lanes shift[kBlocks];
#pragma GCC unroll 4
  for (int b = 0; b < kBlocks; ++b) {
    const size_t at = column + b * kLanes;
    mean[b] = load(n.mean + at);
    inverse[b] = load(n.inverse_std + at);
    scale[b] = load(n.scale + at);
    shift[b] = load(n.shift + at);
  }
  for (size_t r = 0; r < n.rows; ++r) {
#pragma GCC unroll 4
    for (int b = 0; b < kBlocks; ++b) {
      const size_t at = r * n.columns + column + b * kLanes;
      const Lanes normal = (load(n.x + at) - mean[b]) * inverse[b];
      put<kStreams>(n.out + at, activate<kActivation>(fma(normal, scale[b], shift[b])));
    }
  }
}

template <int kBlocks, bool kStreams>
inline void normalise(const NormForward& n, size_t column) {
  if (n.activation == Activation::kSign)
    return normalise_blocks<Activation::kSign, kBlocks, kStreams>(n, column);
  if (n.activation == Activation::kRelu)
    return normalise_blocks<Activation::kRelu, kBlocks, kStreams>(n, column);
  if (n.activation == Activation::kHardtanh)
    return normalise_blocks<Activation::kHardtanh, kBlocks, kStreams>(n, column);
  normalise_blocks<Activation::kNone, kBlocks, kStreams>(n, column);
}

template <int kBlocks>
inline void norm_forward_blocks(const NormForward& n, size_t column) {
  const bool streams = is_streamed(n.rows * n.columns);
  if (streams) {
    // An x that no cache holds is read once, not twice.
    moments_of_blocks<kBlocks>(n.x + column, n.rows, n.columns, n.mean + column, n.variance + column);
  } else {
    norm_statistics<kBlocks>(n, column);
  }
#pragma GCC unroll 4
  for (int b = 0; b < kBlocks; ++b) {
    const size_t at = column + b * kLanes;
    store(n.inverse_std + at, all(1.0f) / root(load(n.variance + at) + all(n.epsilon)));
  }
  if (streams) return normalise<kBlocks, true>(n, column);
  normalise<kBlocks, false>(n, column);
}

void norm_forward(const NormForward& n) {
  for_each_block(n.columns,
                 [&](auto blocks, size_t column) { norm_forward_blocks<blocks.kBlocks>(n, column); });
}

// max(abs(value)), not a number if a value is not finite.
struct Largest {
  Lanes largest = all(0.0f);
  Lanes nothing = all(0.0f);  // unless a value is not finite, which a maximum may pass over

  void take(Lanes value) {
    largest = larger(magnitude(value), largest);
    nothing = fma(value, all(0.0f), nothing);
  }
  void take(const Largest& other) {
    largest = larger(largest, other.largest);
    nothing = nothing + other.nothing;
  }
  float found() const { return largest_of(largest) + sum_of(nothing); }
};

// Batch norm's output, and the gradient behind the activation, are recomputed from x in both passes over the
// rows: that takes less time than to write and read them.
template <Activation kActivation, int kBlocks>
inline void norm_backward_blocks(const NormBackward& n, size_t column, Largest* largest) {
  const Lanes count = all(static_cast<float>(n.rows));
  Lanes mean[kBlocks];
  Lanes inverse[kBlocks];
  Lanes scale[kBlocks];
  Lanes shift[kBlocks];
  Lanes sum[kBlocks];
  Lanes along[kBlocks];  // means of gradient * normal
#pragma GCC unroll 4
  for (int b = 0; b < kBlocks; ++b) {
    mean[b] = load(n.mean + column + b * kLanes);
    inverse[b] = load(n.inverse_std + column + b * kLanes);
    scale[b] = load(n.scale + column + b * kLanes);
    shift[b] = load(n.shift + column + b * kLanes);
  }
  const auto normal_at = [&](size_t at, int b) { return (load(n.x + at) - mean[b]) * inverse[b]; };
  const auto passed = [&](size_t at, int b, Lanes normal) {
    return pass_gradient<kActivation>(load(n.gradient + at), fma(normal, scale[b], shift[b]));
  };
  using Both = ColumnSums<2, kBlocks>;
  const Both sums = sum_columns<2, kBlocks>(n.rows, [&](size_t r, Both* to) {
#pragma GCC unroll 4
    for (int b = 0; b < kBlocks; ++b) {
      const size_t at = r * n.columns + column + b * kLanes;
      const Lanes normal = normal_at(at, b);
      const Lanes gradient = passed(at, b, normal);
      to->of[0][b] = to->of[0][b] + gradient;
      to->of[1][b] = fma(gradient, normal, to->of[1][b]);
    }
  });
  Lanes factor[kBlocks];
#pragma GCC unroll 4
  for (int b = 0; b < kBlocks; ++b) {
    const size_t at = column + b * kLanes;
    store(n.shift_gradient + at, sums.of[0][b]);
    store(n.scale_gradient + at, sums.of[1][b]);
    sum[b] = sums.of[0][b] / count;
    along[b] = all(0.0f) - sums.of[1][b] / count;
    factor[b] = inverse[b] * scale[b];
  }
  Largest own = *largest;
  for (size_t r = 0; r < n.rows; ++r) {
#pragma GCC unroll 4
    for (int b = 0; b < kBlocks; ++b) {
      const size_t at = r * n.columns + column + b * kLanes;
      const Lanes normal = normal_at(at, b);
      const Lanes centred = passed(at, b, normal) - sum[b];
      const Lanes gradient = fma(along[b], normal, centred) * factor[b];
      store(n.x_gradient + at, gradient);
      own.take(gradient);
    }
  }
  *largest = own;
}

template <Activation kActivation>
inline float norm_backward_as(const NormBackward& n) {
  Largest largest;
  for_each_block(n.columns, [&](auto blocks, size_t column) {
    norm_backward_blocks<kActivation, blocks.kBlocks>(n, column, &largest);
  });
  return largest.found();
}

float norm_backward(const NormBackward& n) {
  if (passes_within_one(n.activation)) return norm_backward_as<Activation::kHardtanh>(n);
  if (n.activation == Activation::kRelu) return norm_backward_as<Activation::kRelu>(n);
  return norm_backward_as<Activation::kNone>(n);
}
