#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "bitfed/base/byte_io.h"

namespace bitfed {

// What clients that live in this process keep between rounds, each for itself (a device has a file of its own
// for it). Saved as one file per checkpoint, which holds only the clients that took part since the last one;
// a file is removed once no client's last state is in it. Memory holds the states that are not written yet:
// older ones are read from their file when their client takes part again.
class ClientStates {
 public:
  ClientStates(std::filesystem::path folder, size_t clients)
      : folder_(std::move(folder)), saved_(clients), versions_(clients) {}

  size_t size() const { return saved_.size(); }
  // Empty: nothing kept. A saved state that can no longer be read is a failure. Threads may read and put at
  // the same time.
  Bytes of(uint32_t client) const;
  void put(uint32_t client, Bytes state);

  // The accuracy of the personal model in a client's state, where another process has evaluated it already.
  struct Judged {
    bool has_model = false;
    std::optional<double> accuracy = {};  // empty: no model, or no test samples
  };
  void put(uint32_t client, Bytes state, const Judged& judged);
  std::optional<Judged> judged(uint32_t client) const;  // empty: nobody has

  // How often the client's state has changed in this process; 0: nothing kept.
  uint32_t version(uint32_t client) const { return versions_[client]; }

  // Takes the states as of this round for the next write_saved(), which must come before the next save().
  // Returns the rounds of the files that then together hold all the states.
  std::vector<uint32_t> save(uint32_t round);
  // Makes what was saved durable. Another thread may call it while threads read and put.
  void write_saved();
  // Back to what was saved at this round or before it. An input_error where one of the files that the save
  // returned is gone: without it clients would start from what they kept earlier, or from nothing.
  void restore(uint32_t round, const std::vector<uint32_t>& needed);

  size_t in_memory() const { return unsaved_.size() + being_saved_.size(); }  // states; for tests

 private:
  struct Place {
    uint32_t round = 0;  // of the file; 0: none
    uint64_t offset = 0;
    uint64_t size = 0;
  };

  std::filesystem::path file(uint32_t round) const;
  std::vector<uint32_t> saved_rounds() const;
  std::vector<uint32_t> needed_rounds() const;
  void move_to(uint32_t client, const Place& place);

  std::filesystem::path folder_;
  std::vector<Place> saved_;           // per client, its last saved state
  std::vector<uint32_t> versions_;     // per client
  std::map<uint32_t, size_t> files_;   // by round, the number of clients whose last saved state it holds
  std::map<uint32_t, Bytes> unsaved_;  // by client
  std::map<uint32_t, Bytes> being_saved_;
  uint32_t being_saved_round_ = 0;
  std::map<uint32_t, Judged> judged_;  // by client
  mutable std::mutex mutex_;           // of saved_, unsaved_, being_saved_, versions_ and judged_
};

}  // namespace bitfed
