#include "bitfed/data/formats/zlib_stream.h"

#include "tests/data/hand_made.h"

namespace bitfed {
namespace {

using hand_made::input_error_of;
using hand_made::zlibbed;
using testing::HasSubstr;

TEST(ZlibStream, RoundTrip) {
  for (const size_t size : {0, 1, 4095, 4096, 4097, 1000000}) {
    Bytes bytes(size);
    for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<uint8_t>(i * i >> 3);
    EXPECT_EQ(unzlib(zlibbed(bytes), "f", 1 << 20), bytes) << size;
  }
}

TEST(ZlibStream, RoomForTheClaimedSize) {
  Bytes bytes(1'000'000);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * i >> 3);
  const Bytes packed = zlibbed(bytes);
  const Bytes unpacked = unzlib(packed, "f", 1 << 20, [](auto) { return uint64_t{1'000'000}; });
  EXPECT_EQ(unpacked, bytes);
  EXPECT_EQ(unpacked.capacity(), 1'000'001u);
  // Claims need not be true.
  EXPECT_EQ(unzlib(packed, "f", 1 << 20, [](auto) { return uint64_t{5000}; }), bytes);
  EXPECT_EQ(unzlib(packed, "f", 1 << 20, [](auto) { return UINT64_MAX - 1; }), bytes);
  const Bytes small = zlibbed(Bytes(10'000));
  EXPECT_LT(unzlib(small, "f", 1 << 30, [](auto) { return uint64_t{1} << 30; }).capacity(), 100'000u);
}

TEST(ZlibStream, UnpackingIsBounded) {
  const Bytes bomb = zlibbed(Bytes(10'000'000));
  EXPECT_LT(bomb.size(), 20'000u);
  EXPECT_EQ(input_error_of([&] { unzlib(bomb, "f", 100'000); }), "f: unpacks to more than 100000 bytes");
}

TEST(ZlibStream, TheStreamMustBeWholeAndAlone) {
  Bytes packed = zlibbed(Bytes(100, 7));
  for (size_t size = 0; size < packed.size(); ++size) {
    EXPECT_THAT(input_error_of([&] {
                  unzlib({packed.data(), size}, "f", 1000);
                }),
                HasSubstr("not one complete"));
  }
  packed.push_back(0);
  EXPECT_THAT(input_error_of([&] { unzlib(packed, "f", 1000); }), HasSubstr("bytes follow it"));
}

}  // namespace
}  // namespace bitfed
