#include "bitfed/data/formats/image.h"

#include <string>

#include "bitfed/base/hash/digest.h"
#include "bitfed/data/formats/exif.h"
#include "bitfed/data/formats/sample_sheet.h"
#include "tests/data/hand_made.h"

namespace bitfed {
namespace {

using hand_made::append;
using hand_made::append_be32;
using hand_made::input_error_of;
using testing::ElementsAre;
using testing::HasSubstr;

void append_chunk(Bytes& bytes, const std::string& type, const Bytes& content) {
  append_be32(bytes, static_cast<uint32_t>(content.size()));
  Bytes named;
  append(named, type);
  append(named, std::span<const uint8_t>(content));
  append(bytes, std::span<const uint8_t>(named));
  append_be32(bytes, static_cast<uint32_t>(crc32_z(0, named.data(), named.size())));
}

struct Png {
  uint32_t width = 2;
  uint32_t height = 1;
  uint8_t depth = 8;
  uint8_t colour = 0;  // 0 grey, 2 RGB, 3 palette, 6 RGBA
  Bytes rows;          // each after a 0: no filter
  Bytes palette = {};
};

Bytes png(const Png& image) {
  Bytes bytes = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  Bytes header;
  append_be32(header, image.width);
  append_be32(header, image.height);
  append(header, Bytes{image.depth, image.colour, 0, 0, 0});
  append_chunk(bytes, "IHDR", header);
  if (!image.palette.empty()) append_chunk(bytes, "PLTE", image.palette);
  append_chunk(bytes, "IDAT", hand_made::zlibbed(image.rows));
  append_chunk(bytes, "IEND", {});
  return bytes;
}

std::string refused(const Bytes& bytes) {
  return input_error_of([&] { decode_image(bytes, "a"); });
}

Bytes example(const std::string& name) {
  return read_file(std::string(BITFED_TESTS_DIR) + "/data/images/" + name);
}

TEST(Png, EveryKind) {
  EXPECT_THAT(decode_image(png({.rows = {0, 10, 20}}), "a").pixels, ElementsAre(10, 20));
  EXPECT_THAT(decode_image(png({.width = 1, .colour = 2, .rows = {0, 1, 2, 3}}), "a").pixels,
              ElementsAre(1, 2, 3));
  const Image palette =
      decode_image(png({.colour = 3, .rows = {0, 1, 0}, .palette = {9, 8, 7, 1, 2, 3}}), "a");
  EXPECT_THAT(palette.pixels, ElementsAre(1, 2, 3, 9, 8, 7));
  // 0xffff and 0x8080 are 255 and 128 of 16 bits.
  EXPECT_THAT(decode_image(png({.depth = 16, .rows = {0, 0xff, 0xff, 0x80, 0x80}}), "a").pixels,
              ElementsAre(255, 128));
  // Half transparent lies on black.
  EXPECT_THAT(decode_image(png({.width = 1, .colour = 6, .rows = {0, 200, 100, 0, 128}}), "a").pixels,
              ElementsAre(100, 50, 0));
  EXPECT_THAT(decode_image(png({.width = 8, .depth = 1, .rows = {0, 0xa0}}), "a").pixels,
              ElementsAre(255, 0, 255, 0, 0, 0, 0, 0));
}

TEST(Png, DamageIsRefused) {
  const Bytes whole = png({.width = 4, .height = 4, .rows = Bytes(20)});
  for (const size_t size : {10, 30, 45, 55}) {
    EXPECT_THAT(refused(Bytes(whole.begin(), whole.begin() + static_cast<long>(size))),
                HasSubstr("not a whole PNG"))
        << size;
  }
  Bytes spoilt = whole;
  spoilt[45] ^= 1;
  EXPECT_THAT(refused(spoilt), HasSubstr("not a whole PNG"));
  EXPECT_THAT(refused(png({.width = 4, .height = 4, .rows = Bytes(10)})), HasSubstr("not a whole PNG"));
  EXPECT_THAT(refused(png({.width = 16000, .height = 4000, .rows = Bytes(20)})),
              HasSubstr("more than a file of its size can hold"));
  EXPECT_THAT(refused(png({.width = 100000, .height = 1, .rows = Bytes(20)})), HasSubstr("expected sides"));
  EXPECT_THAT(refused({'G', 'I', 'F', '8'}), HasSubstr("neither the first bytes of a PNG nor of a JPEG"));
  EXPECT_THAT(refused({}), HasSubstr("neither"));
}

// Written by libjpeg from red 32 y, green 32 x, blue 128, at quality 95: decoded values are near.
TEST(Jpeg, GreyColourAndProgressive) {
  const Image grey = decode_image(example("grey.jpg"), "a");
  EXPECT_EQ(grey.channels, 1u);
  EXPECT_NEAR(grey.pixels[8 * 7], 224, 6);
  for (const char* name : {"colour.jpg", "progressive.jpg"}) {
    const Image colour = decode_image(example(name), name);
    ASSERT_EQ(colour.channels, 3u);
    EXPECT_EQ(colour.pixels.size(), 8u * 8 * 3);
    EXPECT_NEAR(colour.pixels[3 * (8 * 6 + 2)], 192, 40) << name;
    EXPECT_NEAR(colour.pixels[3 * (8 * 6 + 2) + 1], 64, 40) << name;
  }
}

// The marker of a camera, with its orientation in the order of bytes of "II" or "MM".
Bytes exif(uint8_t orientation, bool little) {
  const auto number = [&](Bytes& bytes, uint32_t value, int size) {
    for (int i = 0; i < size; ++i)
      bytes.push_back(static_cast<uint8_t>(value >> 8 * (little ? i : size - 1 - i)));
  };
  Bytes bytes = {'E', 'x', 'i', 'f', 0, 0};
  append(bytes, std::string(little ? "II" : "MM"));
  number(bytes, 42, 2);
  number(bytes, 8, 4);                           // where the directory begins
  number(bytes, 2, 2);                           // of two entries
  for (const uint32_t tag : {0x0100, 0x0112}) {  // width, orientation
    number(bytes, tag, 2);
    number(bytes, 3, 2);
    number(bytes, 1, 4);
    number(bytes, orientation, 2);
    number(bytes, 0, 2);
  }
  return bytes;
}

TEST(Jpeg, TurnedAsTheCameraWas) {
  const Bytes whole = example("colour.jpg");
  const Image as_stored = decode_image(whole, "a");
  for (const bool little : {true, false}) {
    const Bytes marker = exif(6, little);
    Bytes bytes = {0xff, 0xd8, 0xff, 0xe1, 0, static_cast<uint8_t>(marker.size() + 2)};
    append(bytes, std::span<const uint8_t>(marker));
    bytes.insert(bytes.end(), whole.begin() + 2, whole.end());
    const Image turned = decode_image(bytes, "a");
    EXPECT_EQ(turned.pixels, turned_upright(as_stored, 6).pixels);
    EXPECT_NE(turned.pixels, as_stored.pixels);
  }
}

TEST(Exif, EveryOrientation) {
  // What is seen of rows 1 2 3 and 4 5 6, by the first row and column of the EXIF standard.
  const std::vector<std::vector<uint8_t>> seen = {{1, 2, 3, 4, 5, 6}, {3, 2, 1, 6, 5, 4}, {6, 5, 4, 3, 2, 1},
                                                  {4, 5, 6, 1, 2, 3}, {1, 4, 2, 5, 3, 6}, {4, 1, 5, 2, 6, 3},
                                                  {6, 3, 5, 2, 4, 1}, {3, 6, 2, 5, 1, 4}};
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const Image upright = turned_upright({2, 3, 1, {1, 2, 3, 4, 5, 6}}, orientation);
    EXPECT_EQ(upright.pixels, seen[static_cast<size_t>(orientation - 1)]) << orientation;
    EXPECT_EQ(upright.height, orientation < 5 ? 2u : 3u);
    EXPECT_EQ(exif_orientation(exif(static_cast<uint8_t>(orientation), true)), orientation);
    EXPECT_EQ(exif_orientation(exif(static_cast<uint8_t>(orientation), false)), orientation);
  }
}

TEST(Exif, DamageIsUpright) {
  const Bytes whole = exif(6, true);
  for (size_t size = 0; size <= whole.size() - 4; ++size)
    EXPECT_EQ(exif_orientation(std::span(whole).first(size)), 1) << size;
  for (const uint8_t orientation : {0, 9, 255}) EXPECT_EQ(exif_orientation(exif(orientation, false)), 1);
  Bytes far = whole;
  std::fill_n(far.begin() + 10, 4, 0xff);  // the directory lies beyond the end
  EXPECT_EQ(exif_orientation(far), 1);
}

TEST(Jpeg, DamageIsRefused) {
  EXPECT_THAT(refused(example("cmyk.jpg")), HasSubstr("found a JPEG in CMYK, expected grey or RGB"));
  const Bytes whole = example("colour.jpg");
  for (const size_t size : {size_t{2}, size_t{30}, size_t{200}, whole.size() - 20, whole.size() - 2}) {
    EXPECT_THAT(refused(Bytes(whole.begin(), whole.begin() + static_cast<long>(size))),
                HasSubstr("not a whole JPEG"))
        << size;
  }
}

TEST(Image, ResizedByMeans) {
  const Image image{2, 2, 1, {0, 10, 20, 30}};
  EXPECT_THAT(resized(image, 1, 1).pixels, ElementsAre(15));
  EXPECT_THAT(resized(image, 1, 2).pixels, ElementsAre(10, 20));
  EXPECT_THAT(resized(image, 4, 1).pixels, ElementsAre(5, 5, 25, 25));
  // Three pixels on two: (2 * 0 + 1 * 30) / 3 and (30 + 2 * 90) / 3.
  EXPECT_THAT(resized({1, 3, 1, {0, 30, 90}}, 1, 2).pixels, ElementsAre(10, 70));
}

TEST(Image, Channels) {
  EXPECT_THAT(with_channels({1, 1, 1, {7}}, 3).pixels, ElementsAre(7, 7, 7));
  EXPECT_THAT(with_channels({1, 1, 3, {255, 0, 0}}, 1).pixels, ElementsAre(76));  // 0.299 of 255
}

TEST(Image, EncodedPngIsRead) {
  const Image image{2, 3, 3, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18}};
  EXPECT_EQ(decode_image(encode_png(image), "a").pixels, image.pixels);
}

TEST(SampleSheet, ARowForEachClass) {
  Dataset data;
  data.height = data.width = data.channels = 1;
  data.pixels = {10, 20, 30};
  data.labels = {1, 0, 1};
  data.class_names = {"a", "b"};
  const Image sheet = sample_sheet(data, 2, 2);
  EXPECT_THAT(sheet.pixels, ElementsAre(255, 255, 255, 255, 255,  //
                                        255, 20, 255, 255, 255,   //
                                        255, 255, 255, 255, 255,  //
                                        255, 10, 255, 30, 255,    //
                                        255, 255, 255, 255, 255));
}

}  // namespace
}  // namespace bitfed
