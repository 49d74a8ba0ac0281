#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bitfed/federated/tsetlin/tsetlin_client.h"
#include "bitfed/tsetlin/state_codec.h"

namespace bitfed {

// The two halves of fedtm with actions = "states": clients train one common machine, and the server takes the
// mean of their automata's states and weights; docs/methods/fedtm.md.

// The key of this client half; see Method::client_key.
inline constexpr const char* kAutomataClientKey = "tsetlin-states-1";

// The common machine of every specialist: what the server broadcasts. Classes that no client has held so far
// are untrained.
struct CommonMachine {
  std::vector<uint16_t> known;        // the other classes, ascending
  std::vector<Automata> specialists;  // the rows of all classes

  void add_to(const TsetlinRecipe& recipe, State* broadcast) const;
  // An untrained one where the broadcast has none. An input_error for a broadcast that does not fit.
  static CommonMachine read(const State& broadcast, const TsetlinRecipe& recipe);

  // The classes of a client's upload: all known ones and its own.
  std::vector<uint16_t> sent_with(const std::vector<uint16_t>& held) const;
};

std::string states_name(size_t specialist);
size_t literals_of(const TsetlinRecipe& recipe, size_t specialist);

// The rows of these classes.
Automata rows_of(const Automata& all, const std::vector<uint16_t>& classes, size_t clauses, size_t literals);

std::unique_ptr<ClientHalf> make_automata_client(const TsetlinRecipe& recipe);
std::unique_ptr<ServerHalf> make_automata_server(const TsetlinRecipe& recipe, uint32_t rounds, uint64_t seed);

}  // namespace bitfed
