#include "bitfed/mpi/dealer.h"

#include <algorithm>

namespace bitfed {

Dealer::Dealer(std::vector<Client> clients, uint32_t threads)
    : clients_(std::move(clients)), threads_(std::max(1u, threads)) {
  std::sort(clients_.begin(), clients_.end(), [](const Client& a, const Client& b) {
    return a.samples != b.samples ? a.samples > b.samples : a.client < b.client;
  });
  if (!clients_.empty()) median_ = static_cast<double>(clients_[clients_.size() / 2].samples);
  for (const Client& client : clients_) left_ += cost(client);
}

double Dealer::cost(const Client& client) const {
  return static_cast<double>(client.samples) + median_;
}

std::vector<uint32_t> Dealer::deal(uint32_t threads, size_t least) {
  // A quarter of what would be this worker's if all went on alike; at least a client per thread.
  const double share = left_ * threads / threads_ / 4;
  least =
      std::max<size_t>(threads, std::min<uint64_t>(least, uint64_t{clients_.size()} * threads / threads_));
  std::vector<uint32_t> dealt;
  for (double taken = 0; !empty() && (dealt.size() < least || taken < share); ++next_) {
    dealt.push_back(clients_[next_].client);
    taken += cost(clients_[next_]);
    left_ -= cost(clients_[next_]);
  }
  return dealt;
}

}  // namespace bitfed
