#include "bitfed/data/formats/mat.h"

#include "bitfed/data/formats/svhn.h"
#include "tests/data/hand_made.h"

namespace bitfed {
namespace {

using hand_made::append;
using hand_made::append_le32;
using hand_made::input_error_of;
using testing::HasSubstr;

Bytes header() {
  Bytes bytes(128, ' ');
  bytes[124] = 0;
  bytes[125] = 1;
  bytes[126] = 'I';
  bytes[127] = 'M';
  return bytes;
}

Bytes element(uint32_t type, const Bytes& data) {
  Bytes bytes;
  append_le32(bytes, type);
  append_le32(bytes, static_cast<uint32_t>(data.size()));
  append(bytes, data);
  while (bytes.size() % 8 != 0) bytes.push_back(0);
  return bytes;
}

// Up to four bytes inside the tag.
Bytes small_element(uint32_t type, Bytes data) {
  Bytes bytes;
  append_le32(bytes, type | static_cast<uint32_t>(data.size()) << 16);
  data.resize(4);
  append(bytes, data);
  return bytes;
}

struct Variable {
  std::string name;
  std::vector<uint32_t> dimensions;
  uint32_t kind = 9;     // mxUINT8_CLASS
  uint32_t storage = 2;  // miUINT8
  Bytes data;
};

Bytes matrix(const Variable& variable) {
  Bytes flags;
  append_le32(flags, variable.kind);
  append_le32(flags, 0);
  Bytes dimensions;
  for (const uint32_t dimension : variable.dimensions) append_le32(dimensions, dimension);
  Bytes content = element(6, flags);
  append(content, element(5, dimensions));
  append(content, small_element(1, Bytes(variable.name.begin(), variable.name.end())));
  append(content, variable.data.size() <= 4 ? small_element(variable.storage, variable.data)
                                            : element(variable.storage, variable.data));
  return element(14, content);
}

Bytes packed(const Bytes& matrix_element) {
  const Bytes stream = hand_made::zlibbed(matrix_element);
  Bytes bytes;
  append_le32(bytes, 15);
  append_le32(bytes, static_cast<uint32_t>(stream.size()));
  append(bytes, stream);
  return bytes;
}

Bytes file(const std::vector<Bytes>& elements) {
  Bytes bytes = header();
  for (const Bytes& one : elements) append(bytes, one);
  return bytes;
}

Bytes doubles(const std::vector<double>& values) {
  Bytes bytes(values.size() * 8);
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

std::vector<MatArray> parse(const Bytes& bytes) {
  const std::vector<std::string> wanted = {"X", "y"};
  return parse_mat(bytes, "f.mat", wanted);
}
std::string error(const Bytes& bytes) {
  return input_error_of([&] { parse(bytes); });
}

// Two images; value (row, column, channel, image) is row + 2 column + 64 channel + 7 image.
Variable svhn_images() {
  Variable images{"X", {32, 32, 3, 2}, 9, 2, {}};
  for (int image = 0; image < 2; ++image) {
    for (int channel = 0; channel < 3; ++channel) {
      for (int x = 0; x < 32; ++x) {
        for (int y = 0; y < 32; ++y)
          images.data.push_back(static_cast<uint8_t>(y + 2 * x + 64 * channel + 7 * image));
      }
    }
  }
  return images;
}

const Variable kLabels = {"y", {2, 1}, 9, 2, {10, 3}};

TEST(Mat, ReadsPackedPlainAndSmallElements) {
  const Variable values{"y", {1, 9}, 9, 2, {1, 2, 3, 4, 5, 6, 7, 8, 9}};
  for (const Bytes& bytes : {file({matrix(values)}), file({packed(matrix(values))})}) {
    const auto arrays = parse(bytes);
    ASSERT_EQ(arrays.size(), 1u);
    EXPECT_EQ(arrays[0].name, "y");
    EXPECT_THAT(arrays[0].dimensions, testing::ElementsAre(1, 9));
    EXPECT_THAT(arrays[0].values, testing::ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9));
  }
  Bytes many(100'000);
  for (size_t i = 0; i < many.size(); ++i) many[i] = static_cast<uint8_t>(i * i >> 3);
  const auto arrays = parse(file({packed(matrix({"X", {1000, 100}, 9, 2, many}))}));
  EXPECT_EQ(arrays.at(0).values, many);
  EXPECT_LT(arrays.at(0).values.capacity(), 101'000u);  // not doubled as it grew
  EXPECT_THAT(parse(file({matrix(kLabels)}))[0].values, testing::ElementsAre(10, 3));
}

// MATLAB stores a double array of small whole numbers as bytes; other writers store doubles.
TEST(Mat, LabelsOfAnyStorage) {
  EXPECT_THAT(parse(file({matrix({"y", {2, 1}, 6, 2, {10, 3}})}))[0].values, testing::ElementsAre(10, 3));
  EXPECT_THAT(parse(file({matrix({"y", {2, 1}, 6, 9, doubles({10, 3})})}))[0].values,
              testing::ElementsAre(10, 3));
  EXPECT_THAT(parse(file({matrix({"y", {2, 1}, 11, 4, {10, 0, 3, 0}})}))[0].values,
              testing::ElementsAre(10, 3));
}

TEST(Mat, SkipsOtherVariables) {
  EXPECT_TRUE(parse(file({matrix({"z", {1, 1}, 4, 4, {1, 0}})})).empty());
  EXPECT_EQ(parse(file({matrix({"z", {1, 1}, 1, 2, {1}}), packed(matrix(kLabels))})).size(), 1u);
}

TEST(Mat, BadHeaders) {
  Bytes bytes = file({matrix(kLabels)});
  bytes[126] = 'M';
  bytes[127] = 'I';
  EXPECT_THAT(error(bytes), HasSubstr("big-endian"));
  bytes[127] = 'x';
  EXPECT_THAT(error(bytes), HasSubstr("has no MATLAB 5 header"));
  bytes = file({matrix(kLabels)});
  bytes[125] = 2;
  EXPECT_THAT(error(bytes), HasSubstr("7.3 (HDF5)"));
  bytes[125] = 3;
  EXPECT_THAT(error(bytes), HasSubstr("version 0x0300, expected 0x0100"));
}

TEST(Mat, BadVariables) {
  EXPECT_THAT(error(file({matrix({"y", {3, 1}, 9, 2, {10, 3}})})), HasSubstr("make 3 bytes, 2 are stored"));
  EXPECT_THAT(error(file({matrix({"y", {0xffffffff, 0xffffffff, 0xffffffff}, 9, 2, {1}})})),
              HasSubstr("1 are stored"));
  EXPECT_THAT(error(file({matrix({"y", {2, 1}, 9, 16, {10, 3}})})), HasSubstr("stored as type 16"));
  EXPECT_THAT(error(file({matrix({"y", {2, 1}, 4, 2, {10, 3}})})), HasSubstr("of class 4"));
  EXPECT_THAT(error(file({matrix({"y", {2, 1}, 6 | 0x800, 2, {10, 3}})})), HasSubstr("expected a real"));
  EXPECT_THAT(error(file({matrix({"y", {2}, 9, 2, {10, 3}})})), HasSubstr("dimensions take 4 bytes"));
  EXPECT_THAT(error(file({matrix(kLabels), matrix(kLabels)})), HasSubstr("occurs twice"));
  EXPECT_THAT(error(file({element(9, doubles({1}))})), HasSubstr("element of type 9, expected variables"));
  for (const double value : {-1.0, 256.0, 1.5, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THAT(error(file({matrix({"y", {1, 1}, 6, 9, doubles({value})})})),
                HasSubstr("expected a whole number"));
  }
}

TEST(Mat, BadPackedVariables) {
  Bytes bytes = file({packed(matrix(kLabels))});
  bytes.back() ^= 1;  // the stream's checksum
  EXPECT_THAT(error(bytes), HasSubstr("not one complete zlib stream"));
  Bytes two = matrix(kLabels);
  append(two, matrix(kLabels));
  EXPECT_THAT(error(file({packed(two)})), HasSubstr("bytes follow a compressed variable"));
  EXPECT_THAT(error(file({packed(packed(matrix(kLabels)))})), HasSubstr("element of type 15"));
}

TEST(Svhn, ColumnsBecomeRowsAndTenIsZero) {
  const Dataset dataset = parse_svhn(file({packed(matrix(svhn_images())), packed(matrix(kLabels))}), "f.mat");
  EXPECT_THAT(dataset.labels, testing::ElementsAre(0, 3));
  ASSERT_EQ(dataset.pixels.size(), 2u * 3072);
  for (size_t y = 0; y < 32; ++y) {
    for (size_t x = 0; x < 32; ++x) {
      for (size_t channel = 0; channel < 3; ++channel) {
        EXPECT_EQ(dataset.image(1)[(y * 32 + x) * 3 + channel],
                  static_cast<uint8_t>(y + 2 * x + 64 * channel + 7));
      }
    }
  }
}

TEST(Svhn, EveryTruncationIsAnError) {
  for (const Bytes& whole : {file({matrix(svhn_images()), matrix(kLabels)}),
                             file({packed(matrix(svhn_images())), packed(matrix(kLabels))})}) {
    ASSERT_EQ(parse_svhn(whole, "f.mat").size(), 2u);
    for (size_t size = 0; size < whole.size(); ++size) {
      const Bytes cut(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size));
      EXPECT_THAT(input_error_of([&] { parse_svhn(cut, "f.mat"); }), HasSubstr("f.mat: "));
    }
  }
}

TEST(Svhn, BadContent) {
  const auto svhn_error = [](const Variable& x, const Variable& y) {
    return input_error_of([&] { parse_svhn(file({matrix(x), matrix(y)}), "f.mat"); });
  };
  EXPECT_THAT(svhn_error(svhn_images(), {"y", {1, 1}, 9, 2, {1}}), HasSubstr("1 labels, but X has 2 images"));
  EXPECT_THAT(svhn_error(svhn_images(), {"y", {2, 1}, 9, 2, {1, 11}}), HasSubstr("label 11 of image 1"));
  EXPECT_THAT(svhn_error(svhn_images(), {"y", {2, 1}, 9, 2, {0, 1}}), HasSubstr("label 0 of image 0"));
  EXPECT_THAT(svhn_error(svhn_images(), {"z", {2, 1}, 9, 2, {0, 1}}), HasSubstr("variable y is missing"));
  EXPECT_THAT(svhn_error({"X", {32, 31, 3, 0}, 9, 2, {}}, kLabels), HasSubstr("expected 32 x 32 x 3"));
  EXPECT_THAT(svhn_error({"X", {32, 32, 3, 0}, 9, 2, {}}, kLabels), HasSubstr("0 values"));
}

}  // namespace
}  // namespace bitfed
