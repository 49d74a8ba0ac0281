#include "bitfed/data/catalog/catalog.h"

#include <cstdlib>
#include <set>

#include "tests/data/hand_made.h"

namespace bitfed {
namespace {

using hand_made::input_error_of;
using testing::ElementsAre;
using testing::HasSubstr;

// Takes an environment variable away, or sets it, for one test.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    value != nullptr ? setenv(name, value, 1) : unsetenv(name);
  }
  ~Environment() { old_ ? setenv(name_, old_->c_str(), 1) : unsetenv(name_); }

 private:
  const char* name_;
  std::optional<std::string> old_;
};

constexpr const char* kTable = "who,a,b,activity\n1,1,2,walk\n1,3,4,run\n2,5,6,walk\n2,7,8,run\n";

DataSplit load(const std::string& recipe, const std::string& data_dir = "", uint64_t seed = 0) {
  const Config config = Config::parse(recipe, "r.toml");
  const DataSplit split = load_data(config.section("data"), data_dir, seed);
  config.reject_unknown_keys();
  return split;
}
std::string error(const std::string& recipe, const std::string& data_dir = "") {
  return input_error_of([&] { load(recipe, data_dir); });
}

TEST(Catalog, EntriesAreComplete) {
  std::set<std::string> names;
  for (const DatasetEntry& entry : datasets()) {
    EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
    EXPECT_FALSE(entry.description.empty() || entry.licence.empty() || entry.how_to_get.empty())
        << entry.name;
    EXPECT_EQ(entry.is_generated(), entry.name == "synthetic-health") << entry.name;
    EXPECT_NE(entry.load, nullptr) << entry.name;
    EXPECT_EQ(entry.pixel_mean.size(), entry.pixel_std.size()) << entry.name;
    for (const DownloadFile& file : entry.downloads) {
      EXPECT_EQ(file.md5.size(), 32u) << file.url;
      EXPECT_TRUE(file.sha256.empty() || file.sha256.size() == 64) << file.url;
    }
  }
}

TEST(Catalog, SearchPath) {
  const Environment data("BITFED_DATA", "/somewhere");
  const Environment home("HOME", "/home/me");
  EXPECT_THAT(data_search_path("here"), ElementsAre("here", "/somewhere", "data",
                                                    "/home/me/.local/share/bitfed", "/usr/share/datasets"));
  const Environment no_data("BITFED_DATA", nullptr);
  const Environment no_home("HOME", nullptr);
  EXPECT_THAT(data_search_path(""), ElementsAre("data", "/usr/share/datasets"));
}

TEST(Catalog, UnknownNamesSuggestTheNearest) {
  EXPECT_EQ(input_error_of([] { load_dataset("mnis", ""); }),
            "unknown data set 'mnis' (did you mean 'mnist'?)");
  for (const std::string file : {"missing.csv", "./missing"})
    EXPECT_EQ(input_error_of([&] { find_entry(file); }),
              file + ": no such file, and no data set has this name");
}

TEST(Catalog, MissingDataSaysWhereAndHow) {
  const Environment data("BITFED_DATA", nullptr);
  const Environment home("HOME", nullptr);
  const hand_made::Folder folder;
  const std::string text = input_error_of([&] { load_dataset("cifar100", folder.path().string()); });
  EXPECT_THAT(text,
              HasSubstr("looked for cifar-100-binary/train.bin in " + folder.path().string() + ", data, "));
  EXPECT_THAT(text, HasSubstr("bitfed data fetch cifar100"));
  folder.write("cifar-100-binary/train.bin", "x");
  EXPECT_THAT(input_error_of([&] { load_dataset("cifar100", folder.path().string()); }),
              HasSubstr("has some of its files, but not cifar-100-binary/test.bin"));
}

TEST(Catalog, LoadsAPackedOrPlainSetFromTheFirstFolder) {
  const hand_made::Folder folder;
  const DatasetEntry& entry = find_entry("mnist");
  for (const std::string& file : entry.files) folder.write(file.substr(0, file.size() - 3), "x");
  EXPECT_TRUE(has_files(entry, folder.path()));
  EXPECT_EQ(find_dataset(entry, folder.path().string()), folder.path());
  EXPECT_THAT(input_error_of([&] { load_dataset("mnist", folder.path().string()); }),
              HasSubstr("mnist/train-images-idx3-ubyte: ends early"));
}

TEST(LoadData, TableOfARecipe) {
  const hand_made::Folder folder;
  folder.write("t.csv", kTable);
  const std::string path = (folder.path() / "t.csv").string();
  const DataSplit split = load("[data]\nfile = \"" + path +
                               "\"\nlabel = \"activity\"\nperson = \"who\"\nignore = \"b\"\n"
                               "test_fraction = 0.5\n");
  EXPECT_THAT(split.train.values, ElementsAre(1, 5));
  EXPECT_THAT(split.test.values, ElementsAre(3, 7));
  // A relative name is found in the data folder.
  const DataSplit same =
      load("[data]\nfile = \"t.csv\"\nlabel = \"activity\"\ntest_fraction = 0.5\n", folder.path().string());
  EXPECT_THAT(same.test.columns, ElementsAre("who", "a", "b"));
}

// A table as a recipe with these keys splits it; the test rows' column a.
std::vector<float> test_rows(const std::string& table, const std::string& keys, uint64_t seed = 0) {
  const hand_made::Folder folder;
  folder.write("t.csv", table);
  return load("[data]\nfile = 't.csv'\nlabel = 'activity'\nperson = 'who'\n" + keys, folder.path().string(),
              seed)
      .test.values.own();
}

constexpr const char* kDays =
    "who,a,activity\n1,0,walk\n1,1,walk\n1,2,run\n1,3,run\n2,4,walk\n2,5,run\n2,6,walk\n2,7,run\n";

TEST(LoadData, SplitsOfAFile) {
  EXPECT_THAT(test_rows(kDays, ""), ElementsAre(3, 7));
  EXPECT_THAT(test_rows(kDays, "test_fraction = 0.5"), ElementsAre(2, 3, 6, 7));
  EXPECT_THAT(test_rows(kDays, "test_fraction = 0.5\nsplit = 'time-per-class'"), ElementsAre(1, 3, 6, 7));
  const std::string drawn = "test_fraction = 0.5\nsplit = 'stratified'";
  EXPECT_EQ(test_rows(kDays, drawn, 1).size(), 4u);
  EXPECT_EQ(test_rows(kDays, drawn, 1), test_rows(kDays, drawn, 1));
  std::set<std::vector<float>> draws;
  for (uint64_t seed = 0; seed < 20; ++seed) draws.insert(test_rows(kDays, drawn, seed));
  EXPECT_GT(draws.size(), 5u) << "the recipe's seed counts";
}

constexpr const char* kPhone =
    "subject,a,activity\n1,0,walk\n1,1,run\n1,2,walk\n1,3,run\n2,4,walk\n2,5,walk\n";

TEST(LoadData, SplitsOfABuiltInTable) {
  const hand_made::Folder folder;
  folder.write("health/hapt14.csv", kPhone);
  folder.write(
      "health/watch.csv",
      ",X1,age,gender,height,weight,steps,device,activity\n1,1,20,1,168,65,0,fitbit,Lying\n"
      "2,2,20,1,168,65,1,fitbit,Lying\n3,3,20,1,168,65,2,fitbit,Running\n4,4,20,1,168,65,3,fitbit,Running\n");
  const auto rows = [&](const std::string& keys) {
    return load("[data]\n" + keys, folder.path().string()).test.values.own();
  };
  EXPECT_THAT(rows("name = 'hapt14'"), ElementsAre(2, 3, 5));
  EXPECT_THAT(rows("name = 'hapt14'\ntest_fraction = 0.25"), ElementsAre(3, 5));
  EXPECT_THAT(rows("name = 'hapt14'\nsplit = 'time-per-class'"), ElementsAre(2, 3, 5));
  EXPECT_THAT(rows("name = 'watch'"), ElementsAre(1, 3));
  EXPECT_THAT(rows("name = 'watch'\nsplit = 'time'\ntest_fraction = 0.5"), ElementsAre(2, 3));
  EXPECT_EQ(load("[data]\nname = 'watch'\nsplit = 'stratified'", folder.path().string()).notes.size(), 1u);
}

TEST(LoadData, ImageSetsAreNotSplit) {
  const hand_made::Folder folder;
  for (const std::string part : {"train", "t10k"}) {
    Bytes images;
    hand_made::append_be32(images, 0x803);
    for (const uint32_t size : {1u, 1u, 1u}) hand_made::append_be32(images, size);
    images.push_back(0);
    Bytes labels;
    hand_made::append_be32(labels, 0x801);
    hand_made::append_be32(labels, 1);
    labels.push_back(3);
    folder.write("mnist/" + part + "-images-idx3-ubyte", images);
    folder.write("mnist/" + part + "-labels-idx1-ubyte", labels);
  }
  for (const std::string key :
       {"split = 'time'", "test_fraction = 0.3", "devices = 3", "test_per_class = true"}) {
    EXPECT_THAT(error("[data]\nname = 'mnist'\n" + key, folder.path().string()),
                HasSubstr("r.toml: line 3: data." + key.substr(0, key.find(' ')) + ": unknown key"));
  }
}

TEST(LoadData, NotesSayWhatWasLeftOutAndWhatNobodyLearns) {
  const hand_made::Folder folder;
  const auto notes = [&](const std::string& table) {
    folder.write("t.csv", table);
    return load("[data]\nfile = 't.csv'\nlabel = 'activity'\nperson = 'who'\ntest_fraction = 0.5\n",
                folder.path().string())
        .notes;
  };
  EXPECT_THAT(notes("who,a,activity\n1,1,walk\n1,2,walk\n"), ElementsAre());
  EXPECT_THAT(notes("who,a,activity\n1,1,walk\n1,2,run\n1,,walk\n"),
              ElementsAre("1 row with an empty cell was left out",
                          "class 'run' is only in the test rows: no client can learn it"));
  EXPECT_THAT(notes("who,a,activity\n1,1,walk\n1,2,walk\n1,,walk\n,3,walk\n"),
              ElementsAre("2 rows with empty cells were left out"));
  std::string unlike = "who,a,activity\n";  // a label per row, as of a column of names
  for (int i = 0; i < 20; ++i) unlike += fmt::format("1,1,row {}\n", i);
  EXPECT_THAT(notes(unlike), ElementsAre(testing::_, testing::_, testing::_, testing::_, testing::_,
                                         "5 more classes are only in the test rows"));
}

TEST(LoadData, ColumnsThatAreNotThere) {
  const hand_made::Folder folder;
  folder.write("t.csv", kTable);
  const std::string path = (folder.path() / "t.csv").string();
  EXPECT_EQ(error("[data]\nfile = 't.csv'\nlabel = 'kind'\n", folder.path().string()),
            path + ": has no column 'kind' (label) (known: who, a, b, activity)");
  EXPECT_EQ(error("[data]\nfile = 't.csv'\nlabel = 'activity'\nperson = 'whom'\n", folder.path().string()),
            path + ": has no column 'whom' (person) (did you mean 'who'?)");
}

TEST(LoadData, BadRecipes) {
  EXPECT_THAT(error("[data]\n"), HasSubstr("found neither"));
  EXPECT_THAT(error("[data]\nname = \"mnist\"\nfile = \"x.csv\"\n"), HasSubstr("found both"));
  EXPECT_THAT(error("[data]\nname = \"minst2\"\n"),
              HasSubstr("r.toml: line 2: data.name: unknown data set 'minst2'"));
  EXPECT_THAT(error("[data]\nfile = \"nowhere.csv\"\nlabel = \"a\"\n"),
              HasSubstr("no file nowhere.csv; looked in"));
  EXPECT_THAT(error("[data]\nfile = \"nowhere.csv\"\n"), HasSubstr("data.label"));
  EXPECT_THAT(error("[data]\nfile = \"x.csv\"\nlabel = \"a\"\ntest_fraction = 1.5\n"),
              HasSubstr("data.test_fraction"));
  EXPECT_THAT(error("[data]\nfile = \"x.csv\"\nlabel = \"a\"\nsplit = \"timed\"\n"), HasSubstr("data.split"));
}

}  // namespace
}  // namespace bitfed
