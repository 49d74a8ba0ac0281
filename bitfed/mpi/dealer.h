#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace bitfed {

// Deals the clients of a round to workers: the largest first, in shares that become smaller. A worker asks
// again when it is done with its share, so that a slow one gets less and the last shares, single clients, end
// at about the same time.
class Dealer {
 public:
  struct Client {
    uint32_t client = 0;
    uint64_t samples = 0;
  };

  // `threads`: of all workers together.
  Dealer(std::vector<Client> clients, uint32_t threads);

  bool empty() const { return next_ == clients_.size(); }

  // The next share, for a worker with so many threads. Empty: none is left. `least`: clients of a share, if
  // that leaves the others their part: small ones would be done before a worker that asks again has its
  // answer.
  std::vector<uint32_t> deal(uint32_t threads, size_t least = 1);

 private:
  double cost(const Client& client) const;

  std::vector<Client> clients_;  // the largest first
  size_t next_ = 0;
  uint32_t threads_;
  double median_ = 0;  // samples; for what a client costs besides its samples
  double left_ = 0;    // the cost of the clients that are left
};

}  // namespace bitfed
