#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bitfed/model/state.h"

namespace bitfed {

// The automata of some clauses as sent in messages, range coded. docs/reference/messages.md describes the
// bytes.
struct Automata {
  std::vector<uint8_t> states;   // one per literal of each clause, in sequence
  std::vector<int32_t> weights;  // one per clause; from 1 to kMaximumWeight

  bool operator==(const Automata&) const = default;
};

// Automata that have not learned anything: at the boundary, weights 1.
Automata untrained_automata(size_t clauses, size_t literals);

// Every state, as a U8 tensor [bytes].
void add_automata(const Automata& automata, const std::string& name, State* state);
// The inverse, for an untrusted tensor. The number of clauses and literals come from the recipe.
Automata read_automata(size_t clauses, size_t literals, const std::string& name, const State& state);

// The states rounded to 16 levels, coded given those of `base`: an upload, where `base` was the broadcast. A
// quarter of the bytes of whole states, and no less accurate (docs/methods/fedtm.md).
void add_levels(const Automata& automata, const Automata& base, const std::string& name, State* state);
// The inverse, for an untrusted tensor: each state is the middle of its level.
Automata read_levels(const Automata& base, const std::string& name, const State& state);

}  // namespace bitfed
