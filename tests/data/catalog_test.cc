#include "bitfed/data/catalog.h"

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

DataSplit load(const std::string& recipe, const std::string& data_dir = "") {
  const Config config = Config::parse(recipe, "r.toml");
  const DataSplit split = load_data(config.section("data"), data_dir);
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
    EXPECT_FALSE(entry.files.empty()) << entry.name;
    EXPECT_NE(entry.load, nullptr) << entry.name;
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
}

}  // namespace
}  // namespace bitfed
