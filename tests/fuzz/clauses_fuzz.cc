#include <zlib.h>

#include <array>

#include "bitfed/base/error.h"
#include "bitfed/tsetlin/clause_codec.h"

namespace {

using namespace bitfed;

ClauseLayout make_layout(uint8_t choice) {
  BooleanizerSpec spec;
  switch (choice % 4) {
    case 0:
      return clause_layout({.height = 1, .width = 9, .planes = 1, .patch_height = 1, .patch_width = 9}, spec);
    case 1:
      return clause_layout({.height = 8, .width = 7, .planes = 3, .patch_height = 4, .patch_width = 3}, spec);
    case 2:
      spec.kind = "colour-thermometer";
      return clause_layout({.height = 5, .width = 6, .planes = 16, .patch_height = 2, .patch_width = 3},
                           spec);
    default:
      spec.kind = "quantile";
      spec.cuts = {{1, 2, 3}, {}, {4}, {5, 6}};
      return clause_layout({.height = 1, .width = 1, .planes = 6, .patch_height = 1, .patch_width = 1}, spec);
  }
}

// The checksum would stop nearly all that a fuzzer makes: what it makes is given one that fits.
Bytes with_checksum(const ClauseLayout& layout, size_t count, std::span<const uint8_t> body) {
  std::array<uint8_t, 16> sizes{};
  sizes[0] = static_cast<uint8_t>(count);
  sizes[8] = static_cast<uint8_t>(layout.literals());
  sizes[9] = static_cast<uint8_t>(layout.literals() >> 8);
  const uLong sum = crc32_z(crc32_z(0, sizes.data(), sizes.size()), body.data(), body.size());
  Bytes bytes(body.begin(), body.end());
  for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<uint8_t>(sum >> shift));
  return bytes;
}

// Whatever is accepted is what the writer makes of it, byte for byte.
void read_as_message(const ClauseLayout& layout, size_t count, const Bytes& bytes) {
  WeightedClauses clauses;
  try {
    clauses = decode_clauses(layout, count, bytes, "fuzz");
  } catch (const Error&) {
    return;
  }
  if (encode_clauses(layout, clauses) != bytes) __builtin_trap();
}

// Any clauses survive the way.
void read_as_clauses(const ClauseLayout& layout, std::span<const uint8_t> bits) {
  const size_t row_bytes = (layout.literals() + 7) / 8;
  const size_t count = bits.size() / (row_bytes + 1);
  WeightedClauses clauses{BitMatrix(count, layout.literals()), {}};
  for (size_t row = 0; row < count; ++row) {
    const uint8_t* first = bits.data() + row * (row_bytes + 1);
    bytes_to_bits(first, layout.literals(), clauses.actions.row(row));
    clauses.weights.push_back(1 + first[row_bytes]);
    if (first[row_bytes] % 4 != 0) reduce_clause(layout, clauses.actions.row(row));
  }
  if (!(decode_clauses(layout, count, encode_clauses(layout, clauses), "again") == clauses)) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const ClauseLayout layout = make_layout(data[0]);
  const std::span<const uint8_t> rest(data + 2, size - 2);
  const size_t count = data[1] % 32;
  switch (data[0] / 4 % 3) {
    case 0:
      read_as_message(layout, count, with_checksum(layout, count, rest));
      break;
    case 1:
      read_as_message(layout, count, Bytes(rest.begin(), rest.end()));
      break;
    default:
      read_as_clauses(layout, rest);
  }
  return 0;
}
