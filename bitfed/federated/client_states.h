#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "bitfed/base/byte_io.h"

namespace bitfed {

// What clients that live in this process keep between rounds, each for itself (a device has a file of its own
// for it). Saved as one file per checkpoint, which holds only the clients that took part since the last one;
// a file is removed once no client's last state is in it.
class ClientStates {
 public:
  ClientStates(std::filesystem::path folder, size_t clients)
      : folder_(std::move(folder)), states_(clients), changed_(clients), saved_in_(clients) {}

  size_t size() const { return states_.size(); }
  const Bytes& of(uint32_t client) const { return states_[client]; }  // empty: nothing kept
  // Threads may put different clients at the same time.
  void put(uint32_t client, Bytes state);

  // Returns the rounds of the files that together hold all the states.
  std::vector<uint32_t> save(uint32_t round);
  // Back to what was saved at this round or before it. An input_error where one of the files that the save
  // returned is gone: without it clients would start from what they kept earlier, or from nothing.
  void restore(uint32_t round, const std::vector<uint32_t>& needed);

 private:
  std::filesystem::path file(uint32_t round) const;
  std::vector<uint32_t> saved_rounds() const;
  std::vector<uint32_t> needed_rounds() const;

  std::filesystem::path folder_;
  std::vector<Bytes> states_;
  std::vector<uint8_t> changed_;    // since the last save
  std::vector<uint32_t> saved_in_;  // the round of the file that holds the client's state; 0: none
};

}  // namespace bitfed
