#include "bitfed/tsetlin/packed_actions.h"

#include "bitfed/base/error.h"

namespace bitfed {

void pack_actions(const BitMatrix& actions, const std::string& name, std::vector<uint64_t> shape,
                  State* state) {
  const size_t row_bytes = (actions.columns() + 7) / 8;
  std::vector<uint8_t> bytes(actions.rows() * row_bytes);
  for (size_t row = 0; row < actions.rows(); ++row) {
    bits_to_bytes(actions.row(row), actions.columns(), bytes.data() + row * row_bytes);
  }
  shape.push_back(row_bytes);
  state->add(name, std::move(shape), bytes);
}

BitMatrix unpack_actions(const State& state, const std::string& name, std::vector<uint64_t> shape,
                         size_t literals) {
  const size_t row_bytes = (literals + 7) / 8;
  shape.push_back(row_bytes);
  const std::vector<uint8_t> bytes = state.values<uint8_t>(name, shape);
  BitMatrix actions(bytes.size() / row_bytes, literals);
  for (size_t row = 0; row < actions.rows(); ++row) {
    const uint8_t* first = bytes.data() + row * row_bytes;
    if (literals % 8 != 0 && first[row_bytes - 1] >> (literals % 8) != 0) {
      throw input_error("{}: tensor '{}': row {} has bits set past its {} literals", state.source(), name,
                        row, literals);
    }
    bytes_to_bits(first, literals, actions.row(row));
  }
  return actions;
}

}  // namespace bitfed
