#include "bitfed/secure/protocol/neighbours.h"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <utility>

namespace bitfed {
namespace {

constexpr size_t kMaxComplete = 64;  // clients of a round in which everybody is everybody's neighbour

struct Row {
  size_t members;  // at most
  size_t neighbours;
};
// A table, since clients must not come to different numbers by their arithmetic; a test computes it.
constexpr Row kRows[] = {{100, 32},   {150, 44},   {200, 56},    {300, 74},     {500, 98},
                         {1000, 116}, {2000, 134}, {10000, 152}, {1 << 20, 182}};

}  // namespace

size_t neighbours_in(size_t members) {
  if (members <= kMaxComplete) return members - 1;
  const Row* row = std::find_if(std::begin(kRows), std::end(kRows) - 1,
                                [&](const Row& candidate) { return members <= candidate.members; });
  return row->neighbours;
}

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
  const size_t neighbours = neighbours_in(ring_.size());
  const auto at = static_cast<size_t>(std::find(ring_.begin(), ring_.end(), member) - ring_.begin());
  assert(at < ring_.size());
  std::vector<uint32_t> result;
  for (size_t step = 0; step <= neighbours; ++step)
    result.push_back(ring_[(at + ring_.size() - neighbours / 2 + step) % ring_.size()]);
  std::sort(result.begin(), result.end());
  return result;
}

}  // namespace bitfed
