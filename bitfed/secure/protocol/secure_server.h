#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "bitfed/base/modular_vector.h"
#include "bitfed/secure/protocol/messages.h"

namespace bitfed {

// The server's side of one sum: passes on keys and shares that it cannot read, and of the survivors' shares
// computes the masks that are left in the sum of their updates. In phases; what comes too late, twice or from
// somebody else is not counted. What a client sends that does not fit is an input_error and changes nothing.
class SecureServer {
 public:
  enum class Phase { kKeys, kShares, kUpdates, kOpening };

  SecureServer(const Digest& session, std::vector<uint32_t> chosen, size_t min_clients);

  Phase phase() const { return phase_; }
  // Those that the phase still waits for.
  std::vector<uint32_t> missing() const;
  bool is_complete() const;  // it waits for nobody

  // True: it counts.
  bool add_keys(uint32_t client, std::span<const uint8_t> message);
  bool add_shares(uint32_t client, std::span<const uint8_t> message);
  bool add_opened(uint32_t client, std::span<const uint8_t> message);

  // Goes on without those that are missing. False: too few are left for a sum ever to be opened, and the
  // phase stays.
  bool end_keys();
  bool end_shares();
  bool end_updates(const std::vector<uint32_t>& survivors);

  // The clients that the present phase's message is for, and the message. A list of keys leaves out the
  // certificates of `known` channels: those of lists that the client has answered.
  using Channels = std::map<uint32_t, PublicKey>;
  const std::vector<uint32_t>& members() const { return members_; }
  bool has_member(uint32_t client) const;
  Bytes message_for(uint32_t client, const Channels& known = {}) const;
  // Adds those of the client's list.
  void add_channels(uint32_t client, Channels* known) const;

  // Whether the answers suffice for every secret that is needed.
  bool can_open() const;
  // Something that does not fit, and the clients of which one is to blame: the server cannot tell which,
  // since what they send each other is sealed.
  struct Fault {
    std::vector<uint32_t> clients;
    std::string text;
  };
  // The secrets that are needed, by owner. A few wrong shares are found out by the digest of the secret, and
  // left out as long as enough others are there. An input_error where nothing can be opened. `faults`, if
  // any: what did not fit, last what the error is about.
  using Secrets = std::map<uint32_t, Secret>;
  Secrets secrets(std::vector<Fault>* faults = nullptr) const;
  // What is to be taken off the sum of the survivors' updates. An input_error where clients disagree about
  // the mask of a pair; then nothing can be opened.
  ModularVector masks(const std::vector<ModularField>& fields, const Secrets& secrets,
                      std::vector<Fault>* faults = nullptr) const;
  ModularVector masks(const std::vector<ModularField>& fields) const { return masks(fields, secrets()); }
  // Whether one has to do with the other's shares.
  bool are_neighbours(uint32_t one, uint32_t other) const;

  // What the last end_…() has added to what a server must not forget, to be stored before messages are sent;
  // and all of it, in order.
  Bytes save() const;
  void restore(std::span<const Bytes> saved);

 private:
  bool enough(const std::vector<uint32_t>& present) const;
  size_t holders_among(uint32_t member, const std::vector<uint32_t>& present) const;
  Secret opened_secret(uint32_t owner, std::set<uint32_t>* wrong, std::vector<Fault>* faults) const;

  Digest session_;
  size_t min_clients_;
  Phase phase_ = Phase::kKeys;
  std::vector<uint32_t> members_;                      // of the present phase: first the chosen clients
  std::map<uint32_t, RoundKeys> keys_;                 // by client
  std::map<uint32_t, SentShares> shares_;              // by sender
  std::map<uint32_t, OpenedShares> opened_;            // by holder
  std::map<uint32_t, std::vector<uint32_t>> holders_;  // of each member's shares, once keys are there
  std::vector<uint32_t> masked_;                       // those that everybody masked with
  std::map<uint32_t, size_t> answers_;                 // of their holders, by owner of the shares
  size_t can_be_opened_ = 0;                           // owners with enough answers
};

}  // namespace bitfed
