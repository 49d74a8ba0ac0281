#include "bitfed/tsetlin/clause_codec.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>

#include "bitfed/base/error.h"
#include "bitfed/base/range_coder.h"

namespace bitfed {
namespace {

constexpr size_t kChecksumBytes = 4;

// A checksum of the bytes, the number of clauses and the layout: the same bytes decoded with another count
// would give other clauses.
uint32_t checksum(const ClauseLayout& layout, size_t count, std::span<const uint8_t> bytes) {
  std::array<uint8_t, 16> sizes{};
  for (size_t i = 0; i < 8; ++i) {
    sizes[i] = static_cast<uint8_t>(uint64_t{count} >> 8 * i);
    sizes[8 + i] = static_cast<uint8_t>(uint64_t{layout.literals()} >> 8 * i);
  }
  const uLong begun = crc32_z(0, sizes.data(), sizes.size());
  return static_cast<uint32_t>(crc32_z(begun, bytes.data(), bytes.size()));
}

enum class Form {
  kDemands,   // reduced, and able to match: coded by thermometer
  kNever,     // the reduced form of every contradictory clause
  kLiterals,  // not reduced (a server may OR clauses): coded by literal
};

Form form_of(const ClauseLayout& layout, const uint64_t* clause) {
  std::vector<uint64_t> reduced(clause, clause + words_for(layout.literals()));
  reduce_clause(layout, reduced.data());
  if (!std::equal(reduced.begin(), reduced.end(), clause)) return Form::kLiterals;
  return get_bit(clause, 0) && get_bit(clause, layout.features) ? Form::kNever : Form::kDemands;
}

// Which of a demand's two bounds are present, as bits.
constexpr unsigned kAbove = 1;
constexpr unsigned kBelow = 2;
constexpr unsigned kBoth = kAbove | kBelow;

unsigned bounds_of(const Demand& demand, size_t size) {
  return (demand.above >= 0 ? kAbove : 0) | (demand.below < static_cast<int32_t>(size) ? kBelow : 0);
}

struct BoundContexts {
  AdaptiveBit both;
  AdaptiveBit above;
};

// Indexed by the feature at which a binary search splits, and by whether the demand has both bounds.
struct LevelContexts {
  explicit LevelContexts(size_t size = 0) {
    for (auto& contexts : above) contexts.resize(size);
    for (auto& contexts : below) contexts.resize(size);
  }
  std::array<std::vector<AdaptiveBit>, 2> above;
  std::array<std::vector<AdaptiveBit>, 2> below;
};

struct PositionContexts {
  explicit PositionContexts(size_t size) : levels(size) {}
  AdaptiveBit any;
  BoundContexts bounds;
  LevelContexts levels;
};

// The context that a thermometer contributes to its neighbours right and below: three counters of eight bits
// each that can be summed: any demand, a bound from above, a bound from below.
constexpr std::array<uint32_t, 4> kTraces = {0, 0x000001 | 0x000100, 0x000001 | 0x010000,
                                             0x000001 | 0x000100 | 0x010000};
constexpr size_t kTraceSums = 8;  // at most 2 + 2 + 1 + 1 neighbours, rounded up

// The recent density of a clause's demands, from 0 to 4096.
class Density {
 public:
  static constexpr size_t kSteps = 8;
  size_t step() const { return static_cast<size_t>(value_ >> 9); }
  void learn(bool demanded) { value_ += ((demanded ? 4096 : 0) - value_) >> 4; }

 private:
  int32_t value_ = 1024;
};

// The description of the bytes for both directions; see range_coder.h. Takes the encoder's values and returns
// the coded ones; for the encoder they are the same.
//
// Bytes of content per clause on trained machines (MNIST, 10 x 10): 13.3 without contexts, 10.5 with the
// neighbours, 10.2 with the density, too. Not used, because they gain too little: mixing of several
// predictions (10.1, more computation); the other channels of the pixel and neighbouring levels (2 % on
// CIFAR-10); the pixel's position, the clause's polarity and its class (0.5 % or worse).
template <typename Coder>
class ClauseCoder {
 public:
  ClauseCoder(const ClauseLayout& layout, Coder& coder)
      : layout_(layout),
        coder_(coder),
        literals_(layout.literals()),
        any_(kTraceSums * Density::kSteps),
        bounds_(kTraceSums * kTraceSums),
        row_cells_((layout.width + 2) * layout.channels),
        traces_((layout.height + 1) * row_cells_) {
    for (const Thermometer& thermometer : layout.positions) positions_.emplace_back(thermometer.size);
    size_t largest = 0;
    for (const Thermometer& thermometer : layout.content) largest = std::max(largest, thermometer.size);
    levels_ = LevelContexts(largest);
  }

  // The number of bits, then the bits after the leading one, of which only the first has a context.
  int32_t weight(int32_t value) {
    const int32_t bits =
        search(static_cast<int32_t>(std::bit_width(static_cast<uint32_t>(value))) - 1, 0, 31, weight_bits_);
    int32_t result = 1;
    for (int32_t i = bits - 1; i >= 0; --i) {
      const bool bit = (value >> i & 1) != 0;
      const bool coded =
          result == 1 ? coder_.code(bit, weight_top_[static_cast<size_t>(bits)]) : coder_.code(bit);
      result = 2 * result + (coded ? 1 : 0);
    }
    return result;
  }

  Form form(Form value) {
    if (coder_.code(value == Form::kDemands, is_demands_)) return Form::kDemands;
    return coder_.code(value == Form::kNever, is_never_) ? Form::kNever : Form::kLiterals;
  }

  void literals(uint64_t* clause) {
    for (size_t literal = 0; literal < literals_.size(); ++literal) {
      if (coder_.code(get_bit(clause, literal), literals_[literal])) set_bit(clause, literal);
    }
  }

  void demands(uint64_t* clause) {
    for (size_t i = 0; i < layout_.positions.size(); ++i) {
      PositionContexts& contexts = positions_[i];
      demand(layout_.positions[i], contexts.any, contexts.bounds, contexts.levels, clause);
    }
    content(clause);
  }

 private:
  // Neighbouring pixels predict a pixel well: the left and upper neighbours count twice, the two upper
  // diagonal ones once. The row above the first and the columns at either end are padding and stay zero.
  void content(uint64_t* clause) {
    Density density;
    const size_t channels = layout_.channels;
    const Thermometer* thermometer = layout_.content.data();
    for (size_t y = 1; y <= layout_.height; ++y) {
      uint32_t* cell = traces_.data() + y * row_cells_ + channels;
      for (size_t x = 0; x < layout_.width * channels; ++x, ++cell, ++thermometer) {
        const uint32_t* above = cell - row_cells_;
        const uint32_t sum = 2 * (*(cell - channels) + *above) + *(above - channels) + *(above + channels);
        AdaptiveBit& any = any_[(sum & 7) * Density::kSteps + density.step()];
        BoundContexts& bounds = bounds_[(sum >> 8 & 7) * kTraceSums + (sum >> 16 & 7)];
        const unsigned found = demand(*thermometer, any, bounds, levels_, clause);
        *cell = kTraces[found];
        density.learn(found != 0);
      }
    }
  }

  unsigned demand(const Thermometer& thermometer, AdaptiveBit& any, BoundContexts& contexts,
                  LevelContexts& levels, uint64_t* clause) {
    const Demand value = Coder::kReads ? Demand() : read_demand(layout_, thermometer, clause);
    const unsigned found = bounds(bounds_of(value, thermometer.size), thermometer.size, any, contexts);
    if (found == 0) return found;
    const auto size = static_cast<int32_t>(thermometer.size);
    const size_t both = found == kBoth ? 1 : 0;
    Demand coded{-1, size};
    if ((found & kAbove) != 0)
      coded.above = search(value.above, 0, size - static_cast<int32_t>(both), levels.above[both]);
    if ((found & kBelow) != 0) coded.below = search(value.below, coded.above + 1, size, levels.below[both]);
    write_demand(layout_, thermometer, coded, clause);
    return found;
  }

  unsigned bounds(unsigned value, size_t size, AdaptiveBit& any, BoundContexts& contexts) {
    if (!coder_.code(value != 0, any)) return 0;
    if (size > 1 && coder_.code(value == kBoth, contexts.both)) return kBoth;
    return coder_.code(value == kAbove, contexts.above) ? kAbove : kBelow;
  }

  // A value in [first, end) by binary search, with a context for each split. The decoder cannot get any other
  // value.
  template <typename Contexts>
  int32_t search(int32_t value, int32_t first, int32_t end, Contexts& contexts) {
    while (end - first > 1) {
      const int32_t middle = (first + end) / 2;
      if (coder_.code(value >= middle, contexts[static_cast<size_t>(middle)])) {
        first = middle;
      } else {
        end = middle;
      }
    }
    return first;
  }

  const ClauseLayout& layout_;
  Coder& coder_;
  std::array<AdaptiveBit, 31> weight_bits_;
  std::array<AdaptiveBit, 31> weight_top_;
  AdaptiveBit is_demands_;
  AdaptiveBit is_never_;
  std::vector<AdaptiveBit> literals_;
  std::vector<PositionContexts> positions_;
  std::vector<AdaptiveBit> any_;       // by the sum of the neighbours and the density
  std::vector<BoundContexts> bounds_;  // by the sums of the neighbours, from above and from below
  LevelContexts levels_;
  size_t row_cells_;
  std::vector<uint32_t> traces_;  // of the current clause
};

// False where the encoder would have chosen another form for the clause.
bool decode_clause(const ClauseLayout& layout, ClauseCoder<RangeDecoder>& coder, uint64_t* clause) {
  switch (coder.form(Form::kDemands)) {
    case Form::kDemands:
      coder.demands(clause);
      break;
    case Form::kNever:
      set_bit(clause, 0);
      set_bit(clause, layout.features);
      break;
    case Form::kLiterals:
      coder.literals(clause);
      return form_of(layout, clause) == Form::kLiterals;
  }
  return true;
}

}  // namespace

Bytes encode_clauses(const ClauseLayout& layout, const WeightedClauses& clauses) {
  assert(clauses.actions.columns() == layout.literals());
  assert(clauses.actions.rows() == clauses.weights.size());
  RangeEncoder range;
  ClauseCoder coder(layout, range);
  std::vector<uint64_t> clause(words_for(layout.literals()));
  for (size_t row = 0; row < clauses.weights.size(); ++row) {
    assert(clauses.weights[row] >= 1);
    coder.weight(clauses.weights[row]);
    std::copy_n(clauses.actions.row(row), clause.size(), clause.begin());
    const Form form = coder.form(form_of(layout, clause.data()));
    if (form == Form::kDemands) coder.demands(clause.data());
    if (form == Form::kLiterals) coder.literals(clause.data());
  }
  Bytes bytes = range.finish();
  const uint32_t sum = checksum(layout, clauses.weights.size(), bytes);
  for (size_t i = 0; i < kChecksumBytes; ++i) bytes.push_back(static_cast<uint8_t>(sum >> 8 * i));
  return bytes;
}

WeightedClauses decode_clauses(const ClauseLayout& layout, size_t count, std::span<const uint8_t> bytes,
                               const std::string& source) {
  if (bytes.size() < kChecksumBytes) {
    throw input_error("{}: found {} bytes, expected {} clauses", source, bytes.size(), count);
  }
  const auto body = bytes.first(bytes.size() - kChecksumBytes);
  ByteReader tail(bytes.subspan(body.size()), source);
  if (tail.u32_le() != checksum(layout, count, body)) {
    throw input_error("{}: found {} bytes that do not fit their checksum, expected {} clauses of {} literals",
                      source, bytes.size(), count, layout.literals());
  }
  WeightedClauses clauses{BitMatrix(count, layout.literals()), std::vector<int32_t>(count)};
  RangeDecoder range(body);
  ClauseCoder coder(layout, range);
  for (size_t row = 0; row < count; ++row) {
    int32_t& weight = clauses.weights[row];
    weight = coder.weight(1);
    if (weight > kMaximumWeight) {
      throw input_error("{}: found weight {} of clause {}, expected at most {}", source, weight, row,
                        kMaximumWeight);
    }
    if (!decode_clause(layout, coder, clauses.actions.row(row))) {
      throw input_error("{}: found clause {} coded by literal, expected the form of a reduced clause", source,
                        row);
    }
  }
  if (!range.at_end()) {
    throw input_error("{}: found bytes that do not end with clause {}, expected {} clauses", source, count,
                      count);
  }
  return clauses;
}

void add_clauses(const ClauseLayout& layout, const WeightedClauses& clauses, const std::string& name,
                 State* state) {
  const Bytes bytes = encode_clauses(layout, clauses);
  state->add(name, {bytes.size()}, bytes);
}

WeightedClauses read_clauses(const ClauseLayout& layout, size_t count, const std::string& name,
                             const State& state) {
  const Bytes bytes = state.values<uint8_t>(name, {State::kAny});
  return decode_clauses(layout, count, bytes, fmt::format("{}: tensor '{}'", state.source(), name));
}

}  // namespace bitfed
