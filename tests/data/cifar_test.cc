#include "bitfed/data/formats/cifar.h"

#include <set>

#include "tests/data/hand_made.h"

namespace bitfed {
namespace {

using hand_made::input_error_of;
using testing::HasSubstr;

// A record whose red plane counts up from 0, green from 1, blue from 2.
Bytes record(const Bytes& label) {
  Bytes bytes = label;
  for (size_t channel = 0; channel < 3; ++channel) {
    for (size_t i = 0; i < 1024; ++i) bytes.push_back(static_cast<uint8_t>(i + channel));
  }
  return bytes;
}

TEST(Cifar, PlanesBecomePixels) {
  Dataset dataset;
  parse_cifar(record({3}), "f", CifarKind::kCifar10, dataset);
  parse_cifar(record({9}), "f", CifarKind::kCifar10, dataset);
  EXPECT_THAT(dataset.labels, testing::ElementsAre(3, 9));
  EXPECT_EQ(dataset.class_names[3], "cat");
  ASSERT_EQ(dataset.pixels.size(), 2u * 3072);
  // Row 1, column 2: position 34 of each plane.
  const auto image = dataset.image(1);
  EXPECT_THAT(image.subspan((32 + 2) * 3, 3), testing::ElementsAre(34, 35, 36));
}

TEST(Cifar, HundredTakesTheFineLabel) {
  Dataset dataset;
  parse_cifar(record({19, 99}), "f", CifarKind::kCifar100, dataset);
  EXPECT_THAT(dataset.labels, testing::ElementsAre(99));
  EXPECT_EQ(dataset.class_count(), 100u);
  EXPECT_EQ(std::set<std::string>(dataset.class_names.begin(), dataset.class_names.end()).size(), 100u);
  EXPECT_EQ(dataset.class_names[99], "worm");
  EXPECT_TRUE(std::is_sorted(dataset.class_names.begin(), dataset.class_names.end()));
}

TEST(Cifar, BadFiles) {
  Dataset dataset;
  const auto error = [&](const Bytes& bytes, CifarKind kind) {
    return input_error_of([&] { parse_cifar(bytes, "f.bin", kind, dataset); });
  };
  EXPECT_EQ(error({}, CifarKind::kCifar10), "f.bin: 0 bytes, expected a multiple of 3073 (one image each)");
  Bytes cut = record({1});
  cut.pop_back();
  EXPECT_THAT(error(cut, CifarKind::kCifar10), HasSubstr("3072 bytes"));
  EXPECT_THAT(error(record({1}), CifarKind::kCifar100), HasSubstr("multiple of 3074"));
  EXPECT_THAT(error(record({10}), CifarKind::kCifar10), HasSubstr("label 10 of image 0, expected 0 to 9"));
  EXPECT_THAT(error(record({0, 100}), CifarKind::kCifar100), HasSubstr("label 100"));
}

TEST(Cifar, LoadsFolders) {
  const hand_made::Folder folder;
  for (const char* name : {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
                           "data_batch_5.bin", "test_batch.bin"}) {
    folder.write(name, record({1}));
  }
  const DataSplit ten = load_cifar10(folder.path());
  EXPECT_EQ(ten.train.size(), 5u);
  EXPECT_EQ(ten.test.size(), 1u);
  folder.write("train.bin", record({0, 1}));
  EXPECT_THAT(input_error_of([&] { load_cifar100(folder.path()); }), HasSubstr("test.bin: cannot be read"));
}

}  // namespace
}  // namespace bitfed
