// The messages of secure aggregation: the first byte says which one the rest is. A reader that takes bytes
// writes the same again; a client or a server that is given them goes on to the right sum, or refuses.

#include <map>
#include <vector>

#include "bitfed/federated/privacy/update_grid.h"
#include "bitfed/secure/protocol/secure_client.h"
#include "bitfed/secure/protocol/secure_server.h"
#include "tests/fuzz/fuzzed_state.h"

namespace {

using namespace bitfed;

const Digest kSession = session_of("fuzz", 1, 0, "");
const std::vector<uint32_t> kNumbers = {1, 2, 3, 4};

void must(bool holds) {
  if (!holds) __builtin_trap();
}

template <typename Work>
bool accepts(Work work) {
  try {
    work();
    return true;
  } catch (const Error& error) {
    check_refusal(error);
    return false;
  }
}

template <typename Read, typename Write>
void round_trip(std::span<const uint8_t> bytes, Read read, Write write) {
  accepts([&] {
    const Bytes again = write(read(bytes));
    must(std::equal(bytes.begin(), bytes.end(), again.begin(), again.end()));
  });
}

SecureClient client_of(uint32_t number) {
  Secret secret{};
  secret[1] = static_cast<uint8_t>(number);  // X25519 passes over bits of the first byte
  static const auto kNobody = std::make_shared<NoIdentity>();
  return {{kSession, secret}, std::make_shared<Channel>(secret, "fuzz", number, kNobody), 3};
}

// A round of four up to where the fuzzed message comes in.
struct Round {
  std::vector<SecureClient> clients;
  SecureServer server{kSession, kNumbers, 3};

  Round() {
    for (const uint32_t number : kNumbers) clients.push_back(client_of(number));
  }
  void keys() {
    for (size_t i = 0; i < 4; ++i) server.add_keys(kNumbers[i], clients[i].keys());
    must(server.end_keys());
  }
  void shares() {
    for (size_t i = 0; i < 4; ++i)
      server.add_shares(kNumbers[i], clients[i].shares_for(server.message_for(kNumbers[i])));
    must(server.end_shares());
    for (size_t i = 0; i < 4; ++i) clients[i].take_shares(server.message_for(kNumbers[i]));
  }
};

const Round& after_keys() {
  static const Round kRound = [] {
    Round round;
    round.keys();
    return round;
  }();
  return kRound;
}

const Round& after_shares() {
  static const Round kRound = [] {
    Round round = after_keys();
    round.shares();
    return round;
  }();
  return kRound;
}

// An honest message, with edits: place (two bytes) and value.
Bytes edited(Bytes message, std::span<const uint8_t> edits) {
  for (; edits.size() >= 3 && !message.empty(); edits = edits.subspan(3))
    message[(edits[0] + 256u * edits[1]) % message.size()] = edits[2];
  return message;
}

// The others, and their keys, may be anybody here, where nobody signs; the client and its own keys may not.
void edited_keys(std::span<const uint8_t> edits) {
  const Bytes honest = after_keys().server.message_for(1);
  const Bytes list = edited(honest, edits);
  SecureClient client = after_keys().clients[0];
  if (!accepts([&] { client.shares_for(list); })) return must(client.session().key_list.empty());
  const KeyList read = read_key_list(list);
  must(read.members.size() == kNumbers.size() && read.keys.size() == kNumbers.size());
  must(read.keys.at(1).channel == read_keys(client.keys()).channel);
  must(read.keys.at(1).secret == read_keys(client.keys()).secret);
  must(accepts([&] { client.shares_for(list); }) &&
       (list == honest || !accepts([&] { client.shares_for(honest); })));
}

// Shares are sealed: a client takes those that were sent, or none.
void edited_shares(std::span<const uint8_t> edits) {
  Round round = after_keys();
  for (size_t i = 0; i < 4; ++i)
    must(round.server.add_shares(kNumbers[i],
                                 round.clients[i].shares_for(round.server.message_for(kNumbers[i]))));
  must(round.server.end_shares());
  const Bytes honest = round.server.message_for(1);
  const Bytes shares = edited(honest, edits);
  must(accepts([&] { round.clients[0].take_shares(shares); }) == (shares == honest));
}

const std::vector<uint32_t> kOneLost = {1, 2, 3};

// A sum to be opened, before the first client's answer. Its shares for the others are edited.
Round before_answer(std::span<const uint8_t> edits, const std::vector<uint32_t>& survivors) {
  Round round = after_keys();
  for (size_t i = 0; i < 4; ++i) {
    const Bytes shares = round.clients[i].shares_for(round.server.message_for(kNumbers[i]));
    round.server.add_shares(kNumbers[i], i == 0 ? edited(shares, edits) : shares);
  }
  must(round.server.end_shares());
  for (size_t i = 0; i < 4; ++i) round.clients[i].take_shares(round.server.message_for(kNumbers[i]));
  must(round.server.end_updates(survivors));
  for (size_t i = 1; i < survivors.size(); ++i)
    round.server.add_opened(survivors[i], round.clients[i].open(round.server.message_for(survivors[i])));
  return round;
}

// The masks of the sum, whose first client's answer is edited. None: a client or the server refuses.
std::optional<ModularVector> masks_of(const Round& before, std::span<const uint8_t> edits) {
  std::optional<ModularVector> masks;
  accepts([&] {
    SecureServer server = before.server;
    SecureClient client = before.clients[0];
    server.add_opened(1, edited(client.open(server.message_for(1)), edits));
    masks = server.masks({{3, 20}});
  });
  return masks;
}

// The sum is opened with the right masks, or not at all.
void edited_answers(std::span<const uint8_t> edits, bool opening, bool lost) {
  static const Round kRounds[] = {before_answer({}, kNumbers), before_answer({}, kOneLost)};
  static const std::optional<ModularVector> kMasks[] = {masks_of(kRounds[0], {}), masks_of(kRounds[1], {})};
  const std::optional<ModularVector>& right = kMasks[lost ? 1 : 0];
  must(right.has_value());
  std::optional<ModularVector> found;
  if (opening) {
    found = masks_of(kRounds[lost ? 1 : 0], edits);
  } else {
    accepts([&] { found = masks_of(before_answer(edits, lost ? kOneLost : kNumbers), {}); });
  }
  must(!found || *found == *right);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::span<const uint8_t> bytes(data + 1, size - 1);
  switch (data[0] % 16) {
    case 0:
      round_trip(bytes, read_keys, write_keys);
      break;
    case 1:
      round_trip(bytes, read_key_list, write_key_list);
      break;
    case 2:
      round_trip(bytes, read_sealed, write_sealed);
      break;
    case 3:
      round_trip(bytes, read_numbers, write_numbers);
      break;
    case 4:
      round_trip(bytes, read_opened, write_opened);
      break;
    case 5: {
      SecureClient client = client_of(1);
      if (!accepts([&] { client.shares_for(bytes); })) must(client.session().key_list.empty());
      break;
    }
    case 6: {
      SecureClient client = after_keys().clients[0];
      client.shares_for(after_keys().server.message_for(1));
      if (!accepts([&] { client.take_shares(bytes); })) must(!client.can_mask());
      break;
    }
    case 7: {
      SecureClient client = after_shares().clients[0];
      if (!accepts([&] { client.open(bytes); })) must(client.session().survivors.empty());
      break;
    }
    case 8: {
      Round round = data[0] < 128 ? after_keys() : after_shares();
      accepts([&] { round.server.add_keys(1, bytes); });
      accepts([&] { round.server.add_shares(1, bytes); });
      must(round.server.phase() == SecureServer::Phase::kUpdates || round.server.end_shares() == false);
      if (round.server.phase() == SecureServer::Phase::kUpdates) {
        must(round.server.end_updates(kNumbers));
        accepts([&] { round.server.add_opened(1, bytes); });
      }
      break;
    }
    case 9:
      round_trip(bytes, read_sent, write_sent);
      break;
    case 11:
      edited_keys(bytes);
      break;
    case 12:
      edited_shares(bytes);
      break;
    case 13:
    case 14:
      edited_answers(bytes, data[0] % 16 == 14, data[0] < 128);
      break;
    default: {
      const std::optional<State> message = fuzzed_state(bytes);
      if (!message) return 0;
      accepts([&] {
        const ModularVector vector = read_sum_message(*message);
        must(read_sum_message(sum_message(vector)) == vector);
      });
    }
  }
  return 0;
}
