// What follows the sums of signs, written once for all vector units, which include this file. Before it a
// unit defines registers of integers and of floats,
//   Sums, load_sums, larger, bits_at_least(sums, min), Values, values_of(sums), load_values, store_values,
//   stream_values, larger and smaller of values, all_values,
// and for_each_quad(patches, finish(quad, filter, the four sums)).

inline Values clipped(Values x) {
  return larger(smaller(x, all_values(1.0f)), all_values(-1.0f));
}

inline Sums largest_of(const Sums (&sums)[4]) {
  return larger(larger(sums[0], sums[1]), larger(sums[2], sums[3]));
}

void sign_pools(const SignPatches& p, const SignPools& pools) {
  for_each_quad(p, [&](size_t quad, size_t at, const Sums(&sums)[4]) {
    const Values product = values_of(largest_of(sums)) * load_values(pools.factor + at);
    const Values x = product + load_values(pools.offset + at);
    store_values(pools.out + quad * p.filter_count + at, clipped(x));
  });
}

void sign_norms(const SignPatches& p, const SignNorms& norms) {
  for_each_quad(p, [&](size_t quad, size_t at, const Sums(&sums)[4]) {
    const Values factor = load_values(norms.factor + at);
    const Values offset = load_values(norms.offset + at);
#pragma GCC unroll 4
    for (size_t corner = 0; corner < 4; ++corner) {
      const size_t to = (4 * quad + corner) * p.filter_count + at;
      const Values product = values_of(sums[corner]) * factor;
      Values x = product + offset;
      if (norms.shortcut != nullptr) x = x + load_values(norms.shortcut + to);
      store_values(norms.out + to, norms.clips ? clipped(x) : x);
    }
  });
}

void sign_thresholds(const SignPatches& p, const SignThresholds& t) {
  for_each_quad(p, [&](size_t quad, size_t at, const Sums(&sums)[4]) {
    const Sums min = load_sums(t.min_sums + at);
    const auto put = [&](size_t i, Sums sum) {
      t.words[t.offsets[i] + at / 32] |= bits_at_least(sum, min) << (at % 32);
    };
    if (t.pools) {
      put(quad, largest_of(sums));
    } else {
#pragma GCC unroll 4
      for (size_t corner = 0; corner < 4; ++corner) put(4 * quad + corner, sums[corner]);
    }
  });
}

void sign_sums(const SignPatches& p, float* out) {
  const bool streams = 4 * p.quads * p.filter_count * sizeof(float) >= kStreamedBytes;
  for_each_quad(p, [&](size_t quad, size_t at, const Sums(&sums)[4]) {
#pragma GCC unroll 4
    for (size_t corner = 0; corner < 4; ++corner) {
      float* to = out + (4 * quad + corner) * p.filter_count + at;
      if (streams) {
        stream_values(to, values_of(sums[corner]));
      } else {
        store_values(to, values_of(sums[corner]));
      }
    }
  });
}
