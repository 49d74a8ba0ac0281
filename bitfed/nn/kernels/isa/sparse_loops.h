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

size_t count_nonzeros(const float* x, size_t count) {
  size_t found = 0;
  for (size_t i = 0; i < count; i += kLanes)
    found += static_cast<size_t>(__builtin_popcount(nonzeros_of(load(x + i))));
  return found;
}

void list_nonzeros(const NonzeroLists& lists) {
  size_t listed = 0;
  for (size_t row = 0; row < lists.rows; ++row) {
    const float* x = lists.x + row * lists.x_stride;
    size_t column = 0;
    for (; column + kLanes <= lists.columns; column += kLanes)
      listed += list_nonzeros_of(load(x + column), lists.offsets + column, lists.values + listed,
                                 lists.found + listed);
    for (; column < lists.columns; ++column) {
      lists.values[listed] = x[column];
      lists.found[listed] = lists.offsets[column];
      listed += x[column] != 0 ? 1 : 0;
    }
    lists.ends[row] = static_cast<uint32_t>(listed);
  }
}
