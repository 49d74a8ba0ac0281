// Products of what is not 0; a part of loops.h.

template <int kVectors>
inline void sparse_columns(const SparseProduct& p, size_t column) {
  size_t term = 0;
  for (size_t group = 0; group < p.groups; ++group) {
    const size_t end = p.ends[group];
    if (term == end) continue;
    float* c = p.c + p.c_offsets[group] + column;
    Lanes sums[kVectors];
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) sums[v] = load(c + v * kLanes);
    for (; term < end; ++term) {
      const Lanes value = all(p.values[term]);
      const float* a = p.a + p.a_offsets[term] + column;
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) sums[v] = fma(value, load(a + v * kLanes), sums[v]);
    }
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) store(c + v * kLanes, sums[v]);
  }
}

template <int kVectors>
inline void sparse_columns_of(size_t vectors, const SparseProduct& p, size_t column) {
  if (vectors == kVectors) return sparse_columns<kVectors>(p, column);
  if constexpr (kVectors > 1) sparse_columns_of<kVectors - 1>(vectors, p, column);
}

// Columns in parts of about the same width: a narrow one would wait for its own sums. The last part first: of
// two groups that overlap, the earlier one has the later columns.
void multiply_sparse(const SparseProduct& p) {
  const size_t vectors = p.columns / kLanes;
  size_t end = vectors;
  for (size_t parts = (vectors + kSparseVectors - 1) / kSparseVectors; parts > 0; --parts) {
    const size_t first = end - end / parts;
    sparse_columns_of<kSparseVectors>(end - first, p, first * kLanes);
    end = first;
  }
}

size_t find_nonzeros(const float* x, size_t count, uint16_t* masks) {
  size_t found = 0;
  for (size_t i = 0; i < count; i += kLanes) {
    const uint32_t mask = nonzeros_of(load(x + i));
    masks[i / kLanes] = static_cast<uint16_t>(mask);
    found += static_cast<size_t>(__builtin_popcount(mask));
  }
  return found;
}
