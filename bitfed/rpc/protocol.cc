#include "bitfed/rpc/protocol.h"

#include <algorithm>

#include "bitfed/base/error.h"
#include "bitfed/base/utf8.h"
#include "bitfed/secure/protocol/messages.h"

namespace bitfed {
namespace {

bool is_sha256(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

std::string printable(std::string_view text, size_t max) {
  std::string result;
  while (!text.empty()) {
    const size_t size = character_size(text);
    const std::string_view character = text.substr(0, std::max<size_t>(size, 1));
    const auto first = static_cast<uint8_t>(character[0]);
    // C0 controls and DEL; C1 controls are C2 80 to C2 9F.
    const bool control = first < ' ' || first == 0x7f ||
                         (first == 0xc2 && size == 2 && static_cast<uint8_t>(character[1]) < 0xa0);
    const std::string_view shown = size == 0 || control ? "?" : character;
    if (result.size() + shown.size() > max) break;
    result += shown;
    text.remove_prefix(character.size());
  }
  return result;
}

std::optional<uint32_t> common_protocol(uint32_t least, uint32_t most) {
  const uint32_t common = std::min(most, kMaxProtocol);
  if (common < std::max(least, kMinProtocol)) return std::nullopt;
  return common;
}

Incoming::Incoming(uint64_t size, std::string sha256, uint64_t limit)
    : size_(size), sha256_(std::move(sha256)) {
  if (size == 0 || size > limit) throw input_error("found {} bytes announced, expected 1 to {}", size, limit);
  if (!is_sha256(sha256_)) throw input_error("found a digest that is not SHA-256 in hexadecimal digits");
  bytes_.reserve(std::min<uint64_t>(size, kMaxMessageBytes));
}

bool Incoming::add(std::string_view chunk) {
  if (chunk.empty() || chunk.size() > size_ - bytes_.size()) {
    throw input_error("found {} bytes more after {} of the {} announced", chunk.size(), bytes_.size(), size_);
  }
  bytes_.insert(bytes_.end(), chunk.begin(), chunk.end());
  return bytes_.size() == size_;
}

Bytes Incoming::take() {
  // OpenSSL's: this is a large part of a server's work, and the program's own takes several times as long.
  if (const std::string found = text_of(digest_of(bytes_)); found != sha256_)
    throw input_error("found bytes with the digest {}, expected {}", found, sha256_);
  return std::move(bytes_);
}

}  // namespace bitfed
