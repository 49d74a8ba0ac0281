#include "bitfed/rpc/protocol.h"

#include <algorithm>

#include "bitfed/base/error.h"
#include "bitfed/base/hash/digest.h"

namespace bitfed {
namespace {

bool is_sha256(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

std::optional<uint32_t> common_protocol(uint32_t least, uint32_t most) {
  const uint32_t common = std::min(most, kMostProtocol);
  if (common < std::max(least, kLeastProtocol)) return std::nullopt;
  return common;
}

Incoming::Incoming(uint64_t size, std::string sha256, uint64_t limit)
    : size_(size), sha256_(std::move(sha256)) {
  if (size == 0 || size > limit) throw input_error("found {} bytes announced, expected 1 to {}", size, limit);
  if (!is_sha256(sha256_)) throw input_error("found a digest that is not SHA-256 in hexadecimal digits");
  bytes_.reserve(std::min<uint64_t>(size, kMostMessageBytes));
}

bool Incoming::add(std::string_view chunk) {
  if (chunk.empty() || chunk.size() > size_ - bytes_.size()) {
    throw input_error("found {} bytes more after {} of the {} announced", chunk.size(), bytes_.size(), size_);
  }
  bytes_.insert(bytes_.end(), chunk.begin(), chunk.end());
  return bytes_.size() == size_;
}

Bytes Incoming::take() {
  if (const std::string found = sha256_hex(bytes_); found != sha256_)
    throw input_error("found bytes with the digest {}, expected {}", found, sha256_);
  return std::move(bytes_);
}

}  // namespace bitfed
