#include "bitfed/data/catalog/own_data.h"

#include "bitfed/data/catalog/catalog.h"
#include "bitfed/data/formats/image.h"
#include "bitfed/data/formats/leaf.h"
#include "tests/base/temporary_folder.h"
#include "tests/data/hand_made.h"

namespace bitfed {
namespace {

using hand_made::append_be32;
using hand_made::input_error_of;
using testing::ElementsAre;
using testing::HasSubstr;

namespace fs = std::filesystem;

DataSplit load(const std::string& keys, const fs::path& folder) {
  const Config config = Config::parse("[data]\n" + keys, "r.toml");
  const DataSplit split = load_data(config.section("data"), folder.string(), 1);
  config.reject_unknown_keys();
  return split;
}
std::string fault(const std::string& keys, const fs::path& folder) {
  return input_error_of([&] { load(keys, folder); });
}

Bytes idx_images(uint32_t count) {
  Bytes bytes;
  append_be32(bytes, 0x803);
  for (const uint32_t value : {count, 2u, 1u}) append_be32(bytes, value);
  for (uint32_t i = 0; i < 2 * count; ++i) bytes.push_back(static_cast<uint8_t>(i));
  return bytes;
}
Bytes idx_labels(const Bytes& labels) {
  Bytes bytes;
  append_be32(bytes, 0x801);
  append_be32(bytes, static_cast<uint32_t>(labels.size()));
  bytes.insert(bytes.end(), labels.begin(), labels.end());
  return bytes;
}

void picture(const fs::path& path, uint8_t value, size_t side = 2) {
  fs::create_directories(path.parent_path());
  write_file_atomically(path, encode_png({side, side, 1, std::vector<uint8_t>(side * side, value)}));
}

TEST(OwnData, IdxPairsOfAnyLabels) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "x-ubyte", idx_images(3));
  write_file_atomically(folder / "y-ubyte", idx_labels({26, 1, 9}));
  write_file_atomically(folder / "u-ubyte", idx_images(1));
  write_file_atomically(folder / "v-ubyte", idx_labels({9}));
  const std::string files =
      "file = 'x-ubyte'\nlabels = 'y-ubyte'\ntest_file = 'u-ubyte'\ntest_labels = 'v-ubyte'\n";
  const DataSplit split = load(files + "class_names = ['A', 'I', 'Z']", folder.path());
  EXPECT_THAT(split.train.labels, ElementsAre(2, 0, 1));
  EXPECT_THAT(split.test.labels, ElementsAre(1));
  EXPECT_THAT(split.train.class_names, ElementsAre("A", "I", "Z"));
  EXPECT_EQ(split.train.pixel_mean.size(), 1u);  // measured
  EXPECT_THAT(load(files, folder.path()).train.class_names, ElementsAre("1", "9", "26"));
  EXPECT_THAT(fault(files + "class_names = ['A']", folder.path()),
              HasSubstr("class_names: found 1 names, expected 3, for the labels 1 to 26"));
  EXPECT_THAT(fault("file = 'x-ubyte'", folder.path()), HasSubstr("labels: found 0 files, expected 1"));
  EXPECT_THAT(fault("file = 'x-ubyte'\nlabels = 'v-ubyte'", folder.path()), HasSubstr("1 labels, but"));
}

TEST(OwnData, RecordsOfSeveralFiles) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "a.bin", Bytes{1, 10, 20, 0, 30, 40});
  write_file_atomically(folder / "b.bin", Bytes{1, 50, 60});
  const std::string keys = "file = ['a.bin', 'b.bin']\ntest_file = 'b.bin'\nimage = [1, 2, 1]";
  const DataSplit split = load(keys, folder.path());
  EXPECT_THAT(split.train.pixels, ElementsAre(10, 20, 30, 40, 50, 60));
  EXPECT_THAT(split.train.labels, ElementsAre(1, 0, 1));
  EXPECT_THAT(fault("file = 'a.bin'\nimage = [2, 2, 1]", folder.path()),
              HasSubstr("6 bytes, expected a multiple of 5"));
  EXPECT_THAT(fault("file = 'a.bin'\nimage = [2, 2]", folder.path()),
              HasSubstr("found 2 numbers, expected 3"));
}

TEST(OwnData, FolderOfClassesIsSplitByFraction) {
  const TemporaryFolder folder;
  for (int i = 0; i < 10; ++i) {
    picture(folder / "pets/cat" / (std::to_string(i) + ".png"), 10);
    picture(folder / "pets/dog é" / (std::to_string(i) + ".PNG"), 20);
  }
  const DataSplit split = load("folder = 'pets'", folder.path());
  EXPECT_EQ(split.train.size(), 16u);
  EXPECT_EQ(split.test.size(), 4u);
  EXPECT_EQ(split.train.name, "pets");
  EXPECT_THAT(split.train.class_names, ElementsAre("cat", "dog é"));
  EXPECT_THAT(split.notes, testing::IsEmpty());
  EXPECT_EQ(load("folder = 'pets'\ntest_fraction = 0.5", folder.path()).test.size(), 10u);
}

TEST(OwnData, WhatSystemsLeaveInFoldersIsPassedOver) {
  const TemporaryFolder folder;
  for (const char* file : {"a/1.png", "a/2.png", "b/1.png", "b/2.png", "__MACOSX/a/1.png"})
    picture(folder / "p" / file, 1);
  for (const char* file :
       {".DS_Store", "a/.DS_Store", "a/._1.png", "b/Thumbs.db", "b/desktop.ini", "desktop.ini"})
    write_file_atomically(folder / "p" / file, std::string_view("x"));
  EXPECT_EQ(load("folder = 'p'\ntest_fraction = 0.5", folder.path()).train.size(), 2u);
}

TEST(OwnData, FoldersOfTrainAndTestAndPeople) {
  const TemporaryFolder folder;
  picture(folder / "d/train/ann/cat/1.png", 1);
  picture(folder / "d/train/bob/dog/1.png", 2);
  picture(folder / "d/test/bob/cat/1.png", 3);
  const DataSplit split = load("folder = 'd'\nperson = 'folder'", folder.path());
  EXPECT_THAT(split.train.group_names, ElementsAre("ann", "bob"));
  EXPECT_THAT(split.train.groups, ElementsAre(0, 1));
  EXPECT_THAT(split.test.groups, ElementsAre(1));
  EXPECT_THAT(split.test.labels, ElementsAre(0));
}

TEST(OwnData, PeopleOfATable) {
  const TemporaryFolder folder;
  picture(folder / "p/a/1.png", 1);
  picture(folder / "p/a/2.png", 1);
  picture(folder / "p/b/1.png", 2);
  write_file_atomically(folder / "who.csv",
                        std::string_view("file,person\na/1.png,x\na/2.png,y\nb/1.png,x\n"));
  const std::string keys = "folder = 'p'\nperson = 'who.csv'\ntest_fraction = 0.5";
  EXPECT_THAT(load(keys, folder.path()).train.group_names, ElementsAre("x", "y"));
  write_file_atomically(folder / "who.csv", std::string_view("file,person\na/1.png,x\n"));
  EXPECT_THAT(fault(keys, folder.path()), HasSubstr("has no line for the file a/2.png"));
  write_file_atomically(folder / "who.csv",
                        std::string_view("file,person\na/1.png,x\na/2.png,\nb/1.png,x\n"));
  EXPECT_THAT(fault(keys, folder.path()),
              HasSubstr("who.csv: line 3: found no person, expected whose a/2.png is"));
  write_file_atomically(folder / "who.csv",
                        std::string_view("file,person\na/1.png,x\nb/1.png,x\na/1.png,y\n"));
  EXPECT_THAT(fault(keys, folder.path()), HasSubstr("line 4: found a/1.png of 'y', expected 'x' as before"));
}

TEST(OwnData, SizesAreMadeEqualOnDemand) {
  const TemporaryFolder folder;
  picture(folder / "p/a/1.png", 1, 2);
  picture(folder / "p/a/2.png", 1, 3);
  picture(folder / "p/b/1.png", 2, 4);
  EXPECT_THAT(fault("folder = 'p'\ntest_fraction = 0.5", folder.path()),
              HasSubstr("found an image of 3 x 3, but"));
  const DataSplit split =
      load("folder = 'p'\ntest_fraction = 0.5\nsize = [2, 2]\nchannels = 3", folder.path());
  EXPECT_EQ(split.train.image_bytes(), 12u);
}

TEST(OwnData, FoldersThatAreRefused) {
  const TemporaryFolder folder;
  picture(folder / "p/a/1.png", 1);
  fs::create_directories(folder / "p/empty");
  EXPECT_THAT(fault("folder = 'p'", folder.path()), HasSubstr("p/empty: holds no image"));
  fs::remove(folder / "p/empty");
  write_file_atomically(folder / "p/a/notes.txt", std::string_view("x"));
  EXPECT_THAT(fault("folder = 'p'", folder.path()),
              HasSubstr("notes.txt: found a file in the folder of class 'a'"));
  fs::remove(folder / "p/a/notes.txt");
  fs::create_directories(folder / "p/caf\xe9");
  EXPECT_THAT(fault("folder = 'p'", folder.path()), HasSubstr("expected names in UTF-8"));
  EXPECT_THAT(fault("folder = 'q'", folder.path()), HasSubstr("no file q"));
  EXPECT_THAT(fault("folder = 'p'\nfile = 'x.npz'", folder.path()), HasSubstr("found beside file"));
  write_file_atomically(folder / "t.parquet", std::string_view("PAR1"));
  EXPECT_THAT(fault("file = 't.parquet'", folder.path()),
              HasSubstr("found Parquet, which the Python package reads"));
}

TEST(OwnData, TinyImagenet) {
  const TemporaryFolder folder;
  picture(folder / "t/train/n01/images/n01_0.JPEG", 1);
  picture(folder / "t/train/n02/images/n02_0.JPEG", 2);
  picture(folder / "t/val/images/val_0.JPEG", 2);
  write_file_atomically(folder / "t/wnids.txt", std::string_view("n01\nn02\n"));
  write_file_atomically(folder / "t/train/n01/n01_boxes.txt", std::string_view("n01_0.JPEG\t0\t0\t1\t1\n"));
  write_file_atomically(folder / "t/val/val_annotations.txt",
                        std::string_view("val_0.JPEG\tn02\t0\t0\t1\t1\n"));
  const DataSplit split = load("folder = 't'", folder.path());
  EXPECT_THAT(split.train.class_names, ElementsAre("n01", "n02"));
  EXPECT_THAT(split.test.labels, ElementsAre(1));
  write_file_atomically(folder / "t/val/val_annotations.txt",
                        std::string_view("val_0.JPEG\tn03\t0\t0\t1\t1\n"));
  EXPECT_THAT(fault("folder = 't'", folder.path()),
              HasSubstr("line 1: found class \"n03\", expected a folder of train"));
  write_file_atomically(folder / "t/val/val_annotations.txt", std::string_view("../../x\n"));
  EXPECT_THAT(fault("folder = 't'", folder.path()), HasSubstr("line 1: expected a file, a tab and a class"));
}

constexpr const char* kLeaf =
    R"({"users": ["b", "a"], "num_samples": [2, 1], "user_data":
        {"b": {"x": [[0, 1], [0.5, 0.25]], "y": [7, 30]}, "a": {"y": [7], "x": [[1, 1]]}}})";

TEST(Leaf, UsersArePeople) {
  const Dataset table = numbered(parse_leaf(kLeaf, {}, "f"), "f", {});
  EXPECT_THAT(table.values, ElementsAre(0, 1, 0.5f, 0.25f, 1, 1));
  EXPECT_THAT(table.labels, ElementsAre(0, 1, 0));
  EXPECT_THAT(table.group_names, ElementsAre("a", "b"));
  EXPECT_THAT(table.groups, ElementsAre(1, 1, 0));
  EXPECT_THAT(parse_leaf(kLeaf, {1, 2, 1}, "f").data.pixels, ElementsAre(0, 255, 128, 64, 255, 255));
}

TEST(Leaf, WhatIsRefused) {
  const auto refused = [](const std::string& text, std::vector<size_t> image = {}) {
    return input_error_of([&] { parse_leaf(text, image, "f.json"); });
  };
  EXPECT_THAT(refused("{\"user_data\": {"), HasSubstr("f.json: not valid JSON"));
  EXPECT_THAT(refused("{}"), HasSubstr("found no samples"));
  EXPECT_THAT(refused(R"({"user_data": {"a": {"x": [[1], [1, 2]], "y": [1, 2]}}})"),
              HasSubstr("sample 1 has 2 values, expected 1"));
  EXPECT_THAT(refused(R"({"user_data": {"a": {"x": [[1]], "y": [1, 2]}}})"),
              HasSubstr("1 samples in x, but 2 labels in y"));
  EXPECT_THAT(refused(R"({"user_data": {"a": {"x": ["1"], "y": [1]}}})"), HasSubstr("no number"));
  EXPECT_THAT(refused(R"({"user_data": {"a": {"x": [[[1]]], "y": [1]}}})"), HasSubstr("an array within"));
  EXPECT_THAT(refused(std::string(100, '[')), HasSubstr("nested deeper"));
  const std::string users = R"("user_data": {"a": {"x": [[1]], "y": [1]}, "b": {"x": [[2]], "y": [2]}}})";
  EXPECT_EQ(refused(R"({"users": ["a", "b"], "num_samples": [1, 3], )" + users),
            "f.json: user_data: \"b\": found 1 samples, expected 3 (num_samples)");
  EXPECT_EQ(refused(R"({"users": ["a", "c"], "num_samples": [1, 1], )" + users),
            "f.json: user_data: \"c\": found 0 samples, expected 1 (num_samples)");
  EXPECT_EQ(refused(R"({"users": ["a", "b"], "num_samples": [1], )" + users),
            "f.json: num_samples: found 1 values, expected 2: one per user");
  EXPECT_THAT(refused(kLeaf, {28, 28, 1}), HasSubstr("found 2 values per sample, expected 28 x 28 x 1"));
}

}  // namespace
}  // namespace bitfed
