#include "bitfed/data/formats/npy.h"

#include <bit>

#include "bitfed/data/formats/arrays.h"
#include "bitfed/data/formats/zip.h"
#include "tests/base/temporary_folder.h"
#include "tests/data/hand_made.h"

namespace bitfed {
namespace {

using hand_made::append;
using hand_made::append_le32;
using hand_made::input_error_of;
using testing::ElementsAre;
using testing::HasSubstr;

// An array as NumPy writes it, version 1.
Bytes npy(const std::string& type, const std::string& shape, const Bytes& values,
          const std::string& order = "False") {
  const std::string header =
      "{'descr': '" + type + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }";
  Bytes bytes;
  append(bytes, std::string_view("\x93NUMPY\x01\x00", 8));
  bytes.push_back(static_cast<uint8_t>(header.size()));
  bytes.push_back(0);
  append(bytes, header);
  append(bytes, std::span<const uint8_t>(values));
  return bytes;
}

void append_le16(Bytes& bytes, uint32_t value) {
  bytes.push_back(static_cast<uint8_t>(value));
  bytes.push_back(static_cast<uint8_t>(value >> 8));
}

// One file of an archive: what stands before its content, then the entry of the directory.
struct Zipped {
  std::string name;
  Bytes content;
  bool deflate = false;
};

Bytes zip(const std::vector<Zipped>& files, uint32_t crc_off_by = 0) {
  Bytes bytes;
  Bytes directory;
  for (const Zipped& file : files) {
    const Bytes packed = file.deflate ? hand_made::deflated(file.content, -15) : file.content;
    const auto crc = static_cast<uint32_t>(crc32_z(0, file.content.data(), file.content.size())) + crc_off_by;
    const auto offset = static_cast<uint32_t>(bytes.size());
    const auto common = [&](Bytes& to) {
      append_le16(to, 20);
      append_le16(to, 0);
      append_le16(to, file.deflate ? 8 : 0);
      append_le32(to, 0);
      append_le32(to, crc);
      append_le32(to, static_cast<uint32_t>(packed.size()));
      append_le32(to, static_cast<uint32_t>(file.content.size()));
      append_le16(to, static_cast<uint32_t>(file.name.size()));
      append_le16(to, 0);
    };
    append_le32(bytes, 0x04034b50);
    common(bytes);
    append(bytes, file.name);
    append(bytes, std::span<const uint8_t>(packed));
    append_le32(directory, 0x02014b50);
    append_le16(directory, 20);
    common(directory);
    for (int i = 0; i < 5; ++i) append_le16(directory, 0);
    append_le32(directory, offset);
    append(directory, file.name);
  }
  const auto at = static_cast<uint32_t>(bytes.size());
  append(bytes, std::span<const uint8_t>(directory));
  append_le32(bytes, 0x06054b50);
  append_le32(bytes, 0);
  append_le16(bytes, static_cast<uint32_t>(files.size()));
  append_le16(bytes, static_cast<uint32_t>(files.size()));
  append_le32(bytes, static_cast<uint32_t>(directory.size()));
  append_le32(bytes, at);
  append_le16(bytes, 0);
  return bytes;
}

std::string refused(const Bytes& bytes) {
  return input_error_of([&] { parse_npy(bytes, "a.npy"); });
}

TEST(Npy, ValuesOfEveryType) {
  EXPECT_EQ(parse_npy(npy("|u1", "(2,)", {7, 255}), "a").number(1), 255);
  EXPECT_EQ(parse_npy(npy("|i1", "(2,)", {7, 255}), "a").number(1), -1);
  EXPECT_EQ(parse_npy(npy("<i8", "(1,)", {0xfe, 255, 255, 255, 255, 255, 255, 255}), "a").number(0), -2);
  EXPECT_EQ(parse_npy(npy("<f4", "(1,)", {0, 0, 0x20, 0x40}), "a").number(0), 2.5);
  EXPECT_EQ(parse_npy(npy("|b1", "(2,)", {1, 0}), "a").text(0), "True");
  const Bytes large = {1, 0, 0, 0, 0, 0, 0, 0x80};  // beyond what a double tells apart
  EXPECT_EQ(parse_npy(npy("<u8", "(1,)", large), "a").text(0), "9223372036854775809");
  EXPECT_EQ(parse_npy(npy("<i8", "(1,)", large), "a").text(0), "-9223372036854775807");
  const NpyArray text =
      parse_npy(npy("<U2", "(2,)", {'a', 0, 0, 0, 0xe9, 0, 0, 0, 'b', 0, 0, 0, 0, 0, 0, 0}), "a");
  EXPECT_EQ(text.text(0), "aé");
  EXPECT_EQ(text.text(1), "b");
  EXPECT_EQ(parse_npy(npy("|S3", "(1,)", {'o', 'k', 0}), "a").text(0), "ok");
  // Zeros at the end are padding; within a string they tell it from another one.
  const NpyArray zeros = parse_npy(npy("|S3", "(2,)", {'a', 0, 'b', 'a', 0, 0}), "a");
  EXPECT_EQ(zeros.text(0), std::string("a\0b", 3));
  EXPECT_EQ(zeros.text(1), "a");
}

// [[1, 2, 3], [4, 5, 6]] is stored as 1 4 2 5 3 6.
TEST(Npy, FortranOrderIsTransposed) {
  EXPECT_THAT(parse_npy(npy("|u1", "(2, 3)", {1, 4, 2, 5, 3, 6}, "True"), "a").values,
              ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(Npy, WhatIsRefused) {
  EXPECT_THAT(refused({'h', 'e', 'l', 'l', 'o'}), HasSubstr("does not begin as a NumPy array"));
  EXPECT_THAT(refused(npy("|O", "(2,)", {1, 2})), HasSubstr("pickled Python objects"));
  EXPECT_THAT(refused(npy(">f4", "(1,)", {0, 0, 0, 0})), HasSubstr("big endian"));
  EXPECT_THAT(refused(npy("<c8", "(1,)", {0, 0, 0, 0, 0, 0, 0, 0})), HasSubstr("found '<c8'"));
  EXPECT_THAT(refused(npy("|u1", "(1099511627776,)", {1, 2})), HasSubstr("2 bytes follow"));
  EXPECT_THAT(refused(npy("|u1", "(4294967296, 4294967296, 4294967296)", {1})), HasSubstr("1 bytes follow"));
  EXPECT_THAT(refused(npy("|u1", "(3,)", {1, 2})), HasSubstr("says 3 values of 1 bytes, 2 bytes follow"));
  EXPECT_THAT(refused(npy("|u1", "two", {1, 2})), HasSubstr("shape"));
  Bytes cut = npy("|u1", "(2,)", {1, 2});
  cut.resize(20);
  EXPECT_THAT(refused(cut), HasSubstr("its header says"));
}

TEST(Zip, StoredAndDeflated) {
  const auto files = parse_zip(zip({{"a", {1, 2, 3}}, {"b", Bytes(5000, 9), true}}), "z");
  ASSERT_EQ(files.size(), 2u);
  EXPECT_THAT(files[0].content, ElementsAre(1, 2, 3));
  EXPECT_EQ(files[1].content, Bytes(5000, 9));
}

TEST(Zip, DamageIsNoticed) {
  const auto fault = [](const Bytes& bytes) { return input_error_of([&] { parse_zip(bytes, "z"); }); };
  const Bytes whole = zip({{"a", Bytes(300, 7), true}});
  EXPECT_THAT(fault(Bytes(whole.begin(), whole.end() - 30)), HasSubstr("no end of a ZIP directory"));
  EXPECT_THAT(fault(zip({{"a", {1}}}, 1)), HasSubstr("CRC-32"));
  Bytes spoilt = whole;
  spoilt[32] ^= 0xff;
  EXPECT_THAT(fault(spoilt), HasSubstr("a is damaged"));
  Bytes large = whole;  // where the directory begins stands in a record that archives of 4 GiB have
  std::fill(large.end() - 6, large.end() - 2, 0xff);
  EXPECT_THAT(fault(large), HasSubstr("found a ZIP64 directory"));
}

TEST(Arrays, ImagesOfBytesAndOfFloats) {
  const NpyArray y = parse_npy(npy("|u1", "(2,)", {5, 3}), "y");
  const NpyArray grey = parse_npy(npy("|u1", "(2, 1, 2)", {1, 2, 3, 4}), "x");
  const Dataset data = numbered(samples_of_arrays({&grey, &y, nullptr, nullptr}, {}, "x"), "x", {});
  EXPECT_EQ(data.width, 2u);
  EXPECT_THAT(data.pixels, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(data.labels, ElementsAre(1, 0));
  EXPECT_THAT(data.class_names, ElementsAre("3", "5"));
  const NpyArray half = parse_npy(npy("<f4", "(1, 1, 1)", {0, 0, 0, 0x3f}), "x");  // 0.5
  const NpyArray one = parse_npy(npy("|u1", "(1,)", {5}), "y");
  EXPECT_THAT(samples_of_arrays({&half, &one, nullptr, nullptr}, {}, "x").data.pixels, ElementsAre(128));
}

// Two pixels of three planes, as PyTorch has them: red 1 2, green 3 4, blue 5 6.
TEST(Arrays, ChannelsFirst) {
  const NpyArray x = parse_npy(npy("|u1", "(1, 3, 1, 2)", {1, 2, 3, 4, 5, 6}), "x");
  const NpyArray y = parse_npy(npy("|u1", "(1,)", {0}), "y");
  EXPECT_THAT(samples_of_arrays({&x, &y, nullptr, nullptr}, {}, "x").data.pixels,
              ElementsAre(1, 3, 5, 2, 4, 6));
}

TEST(Arrays, WhatIsRefused) {
  const NpyArray x = parse_npy(npy("|u1", "(2, 1, 2)", {1, 2, 3, 4}), "x");
  const NpyArray one = parse_npy(npy("|u1", "(1,)", {5}), "y");
  const NpyArray text = parse_npy(npy("|S1", "(2,)", {'a', 'b'}), "x");
  const NpyArray two = parse_npy(npy("<f4", "(1, 1, 1)", {0, 0, 0, 0x40}), "x");
  const NpyArray real = parse_npy(npy("<f4", "(2,)", {0, 0, 0, 0x3f, 0, 0, 0x20, 0x40}), "y");
  const auto fault = [](const NpyArray& values, const NpyArray& labels, std::vector<size_t> image = {}) {
    return input_error_of([&] {
      numbered(samples_of_arrays({&values, &labels, nullptr, nullptr}, image, "f"), "f", {});
    });
  };
  EXPECT_THAT(fault(x, one), HasSubstr("y: found 1, expected one value for each of 2 samples"));
  EXPECT_THAT(fault(text, one), HasSubstr("x: found strings"));
  EXPECT_THAT(fault(two, one), HasSubstr("is 2, expected bytes, or floats from 0 to 1"));
  EXPECT_THAT(fault(x, real), HasSubstr("labels are real values such as 0.5"));
  EXPECT_THAT(fault(x, one, {28, 28, 1}), HasSubstr("expected 28 x 28 x 1"));
  const NpyArray two_classes = parse_npy(npy("|u1", "(2,)", {0, 1}), "y");
  const NpyArray gap = parse_npy(npy("<f4", "(2,)", {0, 0, 0, 0x40, 0, 0, 0xc0, 0x7f}), "person");
  EXPECT_THAT(input_error_of([&] {
                samples_of_arrays({&x, &two_classes, &gap, nullptr}, {}, "f");
              }),
              HasSubstr("person: value 1 is nan"));
}

TEST(Npz, PartsOfKeras) {
  const TemporaryFolder folder;
  const Bytes x = npy("|u1", "(2, 1, 1)", {1, 2});
  const Bytes y = npy("|u1", "(2,)", {0, 1});
  write_file_atomically(
      folder / "k.npz",
      zip({{"x_train.npy", x}, {"y_train.npy", y, true}, {"x_test.npy", x}, {"y_test.npy", y}}));
  EXPECT_TRUE(load_npz(folder / "k.npz", {}).test.has_value());
  write_file_atomically(folder / "n.npz", zip({{"images.npy", x}}));
  EXPECT_THAT(input_error_of([&] { load_npz(folder / "n.npz", {}); }),
              HasSubstr("found images, expected x and y"));
  write_file_atomically(folder / "t.npz", zip({{"x.npy", x}, {"y.npy", y}, {"x.npy", x}}));
  EXPECT_THAT(input_error_of([&] { load_npz(folder / "t.npz", {}); }), HasSubstr("holds 'x.npy' twice"));
}

}  // namespace
}  // namespace bitfed
