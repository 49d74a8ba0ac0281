#include "bitfed/secure/protocol/messages.h"

#include <algorithm>

#include "bitfed/base/error.h"

namespace bitfed {
namespace {

constexpr uint32_t kMaxClients = 1 << 20;
constexpr uint32_t kMaxPartBytes = 1 << 12;               // of a certificate, a signature, a sealed share
constexpr size_t kKeysBytes = 4 + 2 * 32 + 2 * 4;         // of keys without certificate and signature
constexpr size_t kSentBytes = 4 + 32 + 16 + 4 + 64 + 16;  // of a share for one receiver

void put_u32(uint32_t value, Bytes* bytes) {
  const std::array<uint8_t, 4> part = {static_cast<uint8_t>(value), static_cast<uint8_t>(value >> 8),
                                       static_cast<uint8_t>(value >> 16), static_cast<uint8_t>(value >> 24)};
  bytes->insert(bytes->end(), part.begin(), part.end());
}

void put(std::span<const uint8_t> part, Bytes* bytes) {
  bytes->insert(bytes->end(), part.begin(), part.end());
}

void put_sized(std::span<const uint8_t> part, Bytes* bytes) {
  put_u32(static_cast<uint32_t>(part.size()), bytes);
  put(part, bytes);
}

// Reads one message to its end.
class Reader {
 public:
  Reader(std::span<const uint8_t> bytes, const char* name) : reader_(bytes, name), name_(name) {}

  uint32_t u32() { return reader_.u32_le(); }
  template <size_t size = 32>
  std::array<uint8_t, size> block() {
    std::array<uint8_t, size> result;
    const auto bytes = reader_.take(result.size());
    std::copy(bytes.begin(), bytes.end(), result.begin());
    return result;
  }
  Bytes sized() {
    const uint32_t size = u32();
    if (size > kMaxPartBytes)
      throw input_error("{}: found a part of {} bytes, expected at most {}", name_, size, kMaxPartBytes);
    const auto bytes = reader_.take(size);
    return {bytes.begin(), bytes.end()};
  }
  // A count of entries of at least `size` bytes each.
  uint32_t count(size_t size) {
    const uint32_t count = u32();
    if (count > kMaxClients || count > reader_.left() / size)
      throw input_error("{}: found {} entries in {} bytes", name_, count, reader_.left());
    return count;
  }
  // A client's number, above the one before.
  uint32_t number() {
    const uint32_t number = u32();
    if (number < least_)
      throw input_error("{}: found client {}, expected {} or above", name_, number, least_);
    if (number >= kMaxClients) throw input_error("{}: found client {}, expected less", name_, number);
    least_ = number + 1;
    return number;
  }
  void begin_list() { least_ = 0; }
  void end() const {
    if (reader_.left() > 0) throw input_error("{}: found {} bytes past the end", name_, reader_.left());
  }

 private:
  ByteReader reader_;
  const char* name_;
  uint32_t least_ = 0;
};

void put_keys(const RoundKeys& keys, Bytes* bytes) {
  put_u32(keys.number, bytes);
  put(keys.secret, bytes);
  put(keys.channel, bytes);
  put_sized(keys.certificate, bytes);
  put_sized(keys.signature, bytes);
}

RoundKeys take_keys(Reader* reader) {
  RoundKeys keys;
  keys.number = reader->number();
  keys.secret = reader->block();
  keys.channel = reader->block();
  keys.certificate = reader->sized();
  keys.signature = reader->sized();
  return keys;
}

std::vector<uint32_t> take_numbers(Reader* reader) {
  std::vector<uint32_t> numbers(reader->count(4));
  for (uint32_t& number : numbers) number = reader->number();
  return numbers;
}

}  // namespace

Digest session_of(const std::string& federation, uint32_t round, uint32_t attempt,
                  const std::string& broadcast_sha256) {
  const std::string text = fmt::format("bitfed secure aggregation\n{}\n{}\n{}\n{}\n", federation, round,
                                       attempt, broadcast_sha256);
  return digest_of({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

std::string text_of(const Digest& session) {
  std::string text;
  for (const uint8_t byte : session) text += fmt::format("{:02x}", byte);
  return text;
}

Bytes signed_text(const std::string& federation, const RoundKeys& keys) {
  constexpr std::string_view kPurpose = "bitfed secure aggregation: channel key";
  Bytes text;
  text.reserve(kPurpose.size() + 2 * sizeof(uint32_t) + federation.size() + keys.channel.size());
  text.assign(kPurpose.begin(), kPurpose.end());
  put_sized({reinterpret_cast<const uint8_t*>(federation.data()), federation.size()}, &text);
  put_u32(keys.number, &text);
  put(keys.channel, &text);
  return text;
}

Bytes write_keys(const RoundKeys& keys) {
  Bytes bytes;
  put_keys(keys, &bytes);
  return bytes;
}

RoundKeys read_keys(std::span<const uint8_t> bytes) {
  Reader reader(bytes, "keys of a round");
  RoundKeys keys = take_keys(&reader);
  reader.end();
  return keys;
}

Bytes write_key_list(const KeyList& list) {
  Bytes bytes = write_numbers(list.members);
  bytes.reserve(bytes.size() + 4 + list.keys.size() * kKeysBytes);
  put_u32(static_cast<uint32_t>(list.keys.size()), &bytes);
  for (const auto& [number, keys] : list.keys) put_keys(keys, &bytes);
  return bytes;
}

KeyList read_key_list(std::span<const uint8_t> bytes) {
  Reader reader(bytes, "a list of keys");
  KeyList list;
  list.members = take_numbers(&reader);
  reader.begin_list();
  for (uint32_t left = reader.count(kKeysBytes); left > 0; --left) {
    RoundKeys keys = take_keys(&reader);
    const uint32_t number = keys.number;
    list.keys.emplace(number, std::move(keys));
  }
  reader.end();
  return list;
}

Bytes write_sent(const SentShares& shares) {
  Bytes bytes;
  bytes.reserve(2 * sizeof(Digest) + 4 + shares.by_receiver.size() * kSentBytes);
  put(shares.self_mask, &bytes);
  put(shares.wrap_key, &bytes);
  put_u32(static_cast<uint32_t>(shares.by_receiver.size()), &bytes);
  for (const auto& [number, sent] : shares.by_receiver) {
    put_u32(number, &bytes);
    put(sent.wrapped, &bytes);
    put(sent.check, &bytes);
    put_sized(sent.sealed, &bytes);
  }
  return bytes;
}

SentShares read_sent(std::span<const uint8_t> bytes) {
  Reader reader(bytes, "shares for others");
  SentShares shares;
  shares.self_mask = reader.block();
  shares.wrap_key = reader.block();
  for (uint32_t left = reader.count(4 + 32 + 16 + 4); left > 0; --left) {
    SentShare& sent = shares.by_receiver[reader.number()];
    sent.wrapped = reader.block();
    sent.check = reader.block<16>();
    sent.sealed = reader.sized();
  }
  reader.end();
  return shares;
}

Bytes write_sealed(const SealedShares& shares) {
  Bytes bytes;
  put_u32(static_cast<uint32_t>(shares.size()), &bytes);
  for (const auto& [number, sealed] : shares) {
    put_u32(number, &bytes);
    put_sized(sealed, &bytes);
  }
  return bytes;
}

SealedShares read_sealed(std::span<const uint8_t> bytes) {
  Reader reader(bytes, "sealed shares");
  SealedShares shares;
  for (uint32_t left = reader.count(8); left > 0; --left) {
    const uint32_t number = reader.number();
    shares[number] = reader.sized();
  }
  reader.end();
  return shares;
}

Bytes write_numbers(const std::vector<uint32_t>& numbers) {
  Bytes bytes;
  put_u32(static_cast<uint32_t>(numbers.size()), &bytes);
  for (const uint32_t number : numbers) put_u32(number, &bytes);
  return bytes;
}

std::vector<uint32_t> read_numbers(std::span<const uint8_t> bytes) {
  Reader reader(bytes, "a list of clients");
  std::vector<uint32_t> numbers = take_numbers(&reader);
  reader.end();
  return numbers;
}

Bytes write_opened(const OpenedShares& shares) {
  Bytes bytes;
  put_u32(static_cast<uint32_t>(shares.size()), &bytes);
  for (const auto& [number, share] : shares) {
    put_u32(number, &bytes);
    put(share, &bytes);
  }
  return bytes;
}

OpenedShares read_opened(std::span<const uint8_t> bytes) {
  Reader reader(bytes, "opened shares");
  OpenedShares shares;
  for (uint32_t left = reader.count(4 + 32); left > 0; --left) {
    const uint32_t number = reader.number();
    shares[number] = reader.block();
  }
  reader.end();
  return shares;
}

}  // namespace bitfed
