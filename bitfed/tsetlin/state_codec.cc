#include "bitfed/tsetlin/state_codec.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>

#include "bitfed/base/error.h"
#include "bitfed/base/range_coder.h"
#include "bitfed/tsetlin/clause_codec.h"
#include "bitfed/tsetlin/machine/machine.h"

namespace bitfed {
namespace {

constexpr unsigned kLevelBits = 4;
constexpr unsigned kStateBits = 8;
constexpr size_t kLevels = size_t{1} << kLevelBits;
constexpr unsigned kShift = kStateBits - kLevelBits;
constexpr size_t kChecksumBytes = 4;

uint8_t middle_of_level(uint32_t level) {
  return static_cast<uint8_t>((level << kShift) + (1u << (kShift - 1)));
}

// A number of `bits` bits, the most significant first; each bit has a context for every prefix.
template <typename Coder>
uint32_t code_number(Coder& coder, unsigned bits, uint32_t value, AdaptiveBit* contexts) {
  uint32_t prefix = 1;
  for (unsigned i = bits; i-- > 0;)
    prefix = 2 * prefix + (coder.code((value >> i & 1) != 0, contexts[prefix]) ? 1 : 0);
  return prefix - (1u << bits);
}

// The description of the bytes for both directions; see range_coder.h. `base` == nullptr: whole states.
// Otherwise levels: a level mostly stays what it was, and changes come in runs.
template <typename Coder>
void code_automata(Coder& coder, const Automata* base, Automata* automata) {
  std::vector<AdaptiveBit> widths(32);
  std::vector<AdaptiveBit> whole(size_t{1} << kStateBits);
  std::vector<AdaptiveBit> levels(2 * kLevels * kLevels);  // by whether the last changed, by the base's level
  for (int32_t& weight : automata->weights) {
    const auto value = static_cast<uint32_t>(weight);
    const uint32_t width =
        code_number(coder, 5, static_cast<uint32_t>(std::bit_width(value)) - 1, widths.data());
    uint32_t result = 1;
    for (uint32_t i = width; i-- > 0;) result = 2 * result + (coder.code((value >> i & 1) != 0) ? 1 : 0);
    weight = static_cast<int32_t>(result);
  }
  size_t changed = 0;
  for (size_t i = 0; i < automata->states.size(); ++i) {
    uint8_t& state = automata->states[i];
    if (base == nullptr) {
      state = static_cast<uint8_t>(code_number(coder, kStateBits, state, whole.data()));
      continue;
    }
    const uint32_t before = base->states[i] >> kShift;
    AdaptiveBit* contexts = &levels[(changed * kLevels + before) * kLevels];
    const uint32_t level = code_number(coder, kLevelBits, state >> kShift, contexts);
    changed = level != before ? 1 : 0;
    state = middle_of_level(level);
  }
}

// Of the bytes and of the number of clauses and automata: the same bytes decoded for others would give other
// automata.
uint32_t checksum(const Automata& automata, std::span<const uint8_t> bytes) {
  std::array<uint8_t, 16> sizes{};
  for (size_t i = 0; i < 8; ++i) {
    sizes[i] = static_cast<uint8_t>(uint64_t{automata.weights.size()} >> 8 * i);
    sizes[8 + i] = static_cast<uint8_t>(uint64_t{automata.states.size()} >> 8 * i);
  }
  const uLong begun = crc32_z(0, sizes.data(), sizes.size());
  return static_cast<uint32_t>(crc32_z(begun, bytes.data(), bytes.size()));
}

void add_coded(Automata automata, const Automata* base, const std::string& name, State* state) {
  RangeEncoder coder;
  code_automata(coder, base, &automata);
  Bytes bytes = coder.finish();
  const uint32_t sum = checksum(automata, bytes);
  for (size_t i = 0; i < kChecksumBytes; ++i) bytes.push_back(static_cast<uint8_t>(sum >> 8 * i));
  state->add(name, {bytes.size()}, bytes);
}

// `automata` has the sizes of the result; its values are ignored.
Automata read_coded(Automata automata, const Automata* base, const std::string& name, const State& state) {
  const Bytes bytes = state.values<uint8_t>(name, {State::kAny});
  const size_t body = bytes.size() - std::min(bytes.size(), kChecksumBytes);
  const std::span<const uint8_t> coded(bytes.data(), body);
  ByteReader tail(std::span<const uint8_t>(bytes).subspan(body), name);
  if (bytes.size() < kChecksumBytes || tail.u32_le() != checksum(automata, coded)) {
    throw input_error("{}: tensor '{}': found {} bytes that do not fit their checksum, expected {} automata",
                      state.source(), name, bytes.size(), automata.states.size());
  }
  RangeDecoder coder(coded);
  code_automata(coder, base, &automata);
  const bool in_range = std::all_of(automata.weights.begin(), automata.weights.end(),
                                    [](int32_t weight) { return weight >= 1 && weight <= kMaximumWeight; });
  if (!in_range || !coder.at_end()) {
    throw input_error(
        "{}: tensor '{}': expected {} automata and weights from 1 to {}, and nothing after them",
        state.source(), name, automata.states.size(), kMaximumWeight);
  }
  return automata;
}

}  // namespace

Automata untrained_automata(size_t clauses, size_t literals) {
  return {std::vector<uint8_t>(clauses * literals, TsetlinMachine::kInitialState),
          std::vector<int32_t>(clauses, 1)};
}

void add_automata(const Automata& automata, const std::string& name, State* state) {
  add_coded(automata, nullptr, name, state);
}

Automata read_automata(size_t clauses, size_t literals, const std::string& name, const State& state) {
  return read_coded(untrained_automata(clauses, literals), nullptr, name, state);
}

void add_levels(const Automata& automata, const Automata& base, const std::string& name, State* state) {
  assert(automata.states.size() == base.states.size());
  add_coded(automata, &base, name, state);
}

Automata read_levels(const Automata& base, const std::string& name, const State& state) {
  return read_coded(base, &base, name, state);
}

}  // namespace bitfed
