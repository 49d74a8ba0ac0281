#include "bitfed/data/formats/idx.h"

#include "tests/data/hand_made.h"

namespace bitfed {
namespace {

using hand_made::append_be32;
using hand_made::gzipped;
using hand_made::input_error_of;
using testing::HasSubstr;

Bytes images(uint32_t count, uint32_t height, uint32_t width, size_t pixels) {
  Bytes bytes;
  for (const uint32_t word : {0x803u, count, height, width}) append_be32(bytes, word);
  for (size_t i = 0; i < pixels; ++i) bytes.push_back(static_cast<uint8_t>(i + 1));
  return bytes;
}

Bytes labels(uint32_t count, const Bytes& values) {
  Bytes bytes;
  append_be32(bytes, 0x801);
  append_be32(bytes, count);
  hand_made::append(bytes, values);
  return bytes;
}

std::string image_error(const Bytes& bytes) {
  return input_error_of([&] { parse_idx_images(bytes, "f.idx"); });
}
std::string label_error(const Bytes& bytes) {
  return input_error_of([&] { parse_idx_labels(bytes, "f.idx"); });
}

TEST(Idx, PlainAndPackedAreTheSame) {
  const Bytes plain = images(2, 2, 3, 12);
  for (const Bytes& bytes : {plain, gzipped(plain)}) {
    const IdxImages parsed = parse_idx_images(bytes, "f");
    EXPECT_EQ(parsed.count, 2u);
    EXPECT_EQ(parsed.height, 2u);
    EXPECT_EQ(parsed.width, 3u);
    EXPECT_THAT(parsed.pixels, testing::ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12));
  }
  EXPECT_THAT(parse_idx_labels(gzipped(labels(3, {7, 0, 9})), "f"), testing::ElementsAre(7, 0, 9));
}

TEST(Idx, EveryTruncationIsAnError) {
  for (const Bytes& whole : {images(2, 2, 3, 12), gzipped(images(2, 2, 3, 12))}) {
    for (size_t size = 0; size < whole.size(); ++size) {
      EXPECT_THAT(image_error(Bytes(whole.begin(), whole.begin() + size)), HasSubstr("f.idx: "));
    }
  }
}

TEST(Idx, HeaderMustAgreeWithTheBytes) {
  EXPECT_THAT(image_error(images(3, 2, 2, 8)), HasSubstr("3 items of 4 bytes, 8 bytes follow"));
  EXPECT_THAT(image_error(images(1, 2, 2, 8)), HasSubstr("1 items of 4 bytes, 8 bytes follow"));
  EXPECT_THAT(image_error(images(0xffffffff, 4096, 4096, 8)), HasSubstr("8 bytes follow"));
  EXPECT_THAT(image_error(images(1, 0, 2, 0)), HasSubstr("height is 0"));
  EXPECT_THAT(image_error(images(1, 2, 0x80000000, 0)), HasSubstr("width is 2147483648"));
  EXPECT_THAT(image_error(images(0, 2, 2, 0)), HasSubstr("0 items"));
  EXPECT_THAT(label_error(labels(2, {1})), HasSubstr("2 items"));
}

TEST(Idx, WrongMagicIsNamed) {
  EXPECT_EQ(image_error(labels(1, {1})), "f.idx: starts with 0x00000801, expected 0x00000803 (IDX images)");
  EXPECT_THAT(label_error(images(1, 1, 1, 1)), HasSubstr("expected 0x00000801 (IDX labels)"));
}

TEST(Idx, DamagedGzipIsAnError) {
  Bytes packed = gzipped(images(2, 2, 3, 12));
  packed[packed.size() - 8] ^= 1;  // the CRC
  EXPECT_THAT(image_error(packed), HasSubstr("not valid gzip data"));
}

class IdxFolder : public testing::Test {
 protected:
  void write(const Bytes& train_labels) {
    folder_.write("train-images-idx3-ubyte.gz", gzipped(images(2, 2, 2, 8)));
    folder_.write("train-labels-idx1-ubyte", train_labels);
    folder_.write("t10k-images-idx3-ubyte", images(1, 2, 2, 4));
    folder_.write("t10k-labels-idx1-ubyte.gz", gzipped(labels(1, {0})));
  }
  DataSplit load() { return load_idx(folder_.path(), "tiny", {"a", "b"}); }
  hand_made::Folder folder_;
};

TEST_F(IdxFolder, LoadsPackedAndPlainFiles) {
  write(labels(2, {1, 0}));
  const DataSplit split = load();
  EXPECT_EQ(split.train.name, "tiny");
  EXPECT_THAT(split.train.labels, testing::ElementsAre(1, 0));
  EXPECT_THAT(split.train.image(1), testing::ElementsAre(5, 6, 7, 8));
  EXPECT_EQ(split.train.channels, 1u);
  EXPECT_EQ(split.test.size(), 1u);
}

TEST_F(IdxFolder, CountsMustAgree) {
  write(labels(1, {1}));
  EXPECT_THAT(input_error_of([&] { load(); }), HasSubstr("1 labels, but"));
}

TEST_F(IdxFolder, LabelsMustBeClasses) {
  write(labels(2, {1, 2}));
  EXPECT_THAT(input_error_of([&] { load(); }), HasSubstr("label 2 of item 1, expected 0 to 1"));
}

TEST_F(IdxFolder, BothPartsMustHaveOneSize) {
  write(labels(2, {1, 0}));
  folder_.write("t10k-images-idx3-ubyte", images(1, 1, 4, 4));
  EXPECT_THAT(input_error_of([&] { load(); }), HasSubstr("test images 1x4"));
}

TEST_F(IdxFolder, MissingFileIsNamed) {
  EXPECT_THAT(input_error_of([&] { load(); }), HasSubstr("train-images-idx3-ubyte.gz: cannot be read"));
}

}  // namespace
}  // namespace bitfed
