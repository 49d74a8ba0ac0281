#include "bitfed/secure/protocol/neighbours.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace bitfed {
namespace {

constexpr size_t kMaxComplete = 64;  // clients of a round in which everybody is everybody's neighbour
constexpr size_t kReach = 32;        // else: on either side

}  // namespace

Neighbours::Neighbours(const Digest& session, const std::vector<uint32_t>& members) : ring_(members) {
  assert(std::is_sorted(members.begin(), members.end()));
  if (members.size() <= kMaxComplete) return;
  std::vector<std::pair<Digest, uint32_t>> places;
  for (const uint32_t member : members) {
    Bytes text(session.begin(), session.end());
    for (int i = 0; i < 4; ++i) text.push_back(static_cast<uint8_t>(member >> (8 * i)));
    places.emplace_back(digest_of(text), member);
  }
  std::sort(places.begin(), places.end());
  std::transform(places.begin(), places.end(), ring_.begin(), [](const auto& place) { return place.second; });
}

std::vector<uint32_t> Neighbours::holders(uint32_t member) const {
  if (ring_.size() <= 2 * kReach) {
    std::vector<uint32_t> all = ring_;
    std::sort(all.begin(), all.end());
    return all;
  }
  const auto at = static_cast<size_t>(std::find(ring_.begin(), ring_.end(), member) - ring_.begin());
  assert(at < ring_.size());
  std::vector<uint32_t> result;
  for (size_t step = 0; step <= 2 * kReach && step < ring_.size(); ++step)
    result.push_back(ring_[(at + ring_.size() - kReach + step) % ring_.size()]);
  std::sort(result.begin(), result.end());
  return result;
}

}  // namespace bitfed
