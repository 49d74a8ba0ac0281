#include "bitfed/data/catalog/split_table.h"

#include <algorithm>
#include <set>

#include "bitfed/data/formats/csv.h"
#include "bitfed/data/partition/partition.h"
#include "tests/data/hand_made.h"

namespace bitfed {
namespace {

using hand_made::input_error_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Dataset parse(const std::string& text) {
  return parse_csv("a,who,label\n" + text, "t.csv", {.label = "label", .person = "who", .ignore = {}});
}

// The values of column a are the rows' numbers; people take turns; the first half is of class x.
Dataset table_of(size_t rows) {
  std::string text;
  for (size_t i = 0; i < rows; ++i)
    text += fmt::format("{},{},{}\n", i, i % 2 == 0 ? "p" : "q", i < rows / 2 ? "x" : "y");
  return parse(text);
}

DataSplit split(const Dataset& table, const std::string& kind, double test_fraction, uint64_t seed = 0) {
  return split_table(table, {.kind = kind, .test_fraction = test_fraction}, seed);
}

TEST(SplitTable, LastRowsOfEachPersonAreForTesting) {
  const DataSplit parts = split(table_of(10), "time", 0.4);
  EXPECT_THAT(parts.train.values, ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(parts.test.values, ElementsAre(6, 7, 8, 9));
  EXPECT_EQ(parts.train.class_names, parts.test.class_names);
  EXPECT_THAT(parts.test.groups, ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(parts.notes, IsEmpty());
}

TEST(SplitTable, LastRowsOfEachClassOfAPerson) {
  const DataSplit parts = split(table_of(8), "time-per-class", 0.5);
  EXPECT_THAT(parts.train.values, ElementsAre(0, 1, 4, 5));
  EXPECT_THAT(parts.test.values, ElementsAre(2, 3, 6, 7));
  EXPECT_THAT(parts.notes, IsEmpty());
}

TEST(SplitTable, WithoutPeopleTheLastRowsOfAll) {
  const Dataset table =
      parse_csv("a,label\n1,x\n2,x\n3,x\n4,x\n", "t.csv", {.label = "label", .person = "", .ignore = {}});
  EXPECT_THAT(split(table, "time", 0.25).test.values, ElementsAre(4));
}

TEST(SplitTable, StratifiedDrawsFromEachClassOfAPerson) {
  const Dataset table = table_of(80);
  const DataSplit parts = split(table, "stratified", 0.3, 5);
  for (const auto& [part, expected] : {std::pair(&parts.train, 14u), std::pair(&parts.test, 6u)}) {
    EXPECT_TRUE(std::is_sorted(part->values.begin(), part->values.end())) << "the order of the file";
    for (const uint32_t person : {0u, 1u}) {
      for (const uint16_t label : {0, 1}) {
        uint32_t rows = 0;
        for (size_t i = 0; i < part->size(); ++i)
          rows += part->groups[i] == person && part->labels[i] == label;
        EXPECT_EQ(rows, expected) << person << " " << label;
      }
    }
  }
  std::set<float> all(parts.train.values.begin(), parts.train.values.end());
  all.insert(parts.test.values.begin(), parts.test.values.end());
  EXPECT_EQ(all.size(), 80u) << "every row on one side";
  ASSERT_EQ(parts.notes.size(), 1u);
  EXPECT_THAT(parts.notes[0], HasSubstr("neighbouring windows of one recording may be on both sides"));
}

TEST(SplitTable, StratifiedIsAFunctionOfRowsAndSeed) {
  const Dataset table = table_of(80);
  const std::vector<float> drawn = split(table, "stratified", 0.3, 5).test.values.own();
  EXPECT_EQ(split(table, "stratified", 0.3, 5).test.values, drawn);
  EXPECT_NE(split(table, "stratified", 0.3, 6).test.values, drawn);
  EXPECT_NE(split(table, "time-per-class", 0.3).test.values, drawn);
  EXPECT_EQ(split(table, "time", 0.3, 5).test.values, split(table, "time", 0.3, 6).test.values);
}

TEST(SplitTable, EveryoneKeepsARowToTrainWith) {
  const Dataset table = parse("0,p,x\n1,q,x\n2,q,x\n3,r,y\n4,r,x\n5,r,y\n");
  for (const char* kind : {"time", "time-per-class", "stratified"}) {
    for (const double fraction : {0.5, 0.9, 0.99}) {
      const DataSplit parts = split(table, kind, fraction);
      const std::set<uint32_t> trained(parts.train.groups.begin(), parts.train.groups.end());
      const std::set<uint32_t> tested(parts.test.groups.begin(), parts.test.groups.end());
      EXPECT_THAT(trained, ElementsAre(0, 1, 2)) << kind << " " << fraction;
      EXPECT_THAT(tested, ElementsAre(1, 2)) << "p's only row is for training: " << kind << " " << fraction;
      EXPECT_EQ(make_partition(parts.train, {.kind = "column"}, 0).size(), 3u);
    }
  }
  // round(0.3 * 1) and round(0.3 * 2) of the rows
  EXPECT_THAT(split(table, "time", 0.3).test.values, ElementsAre(2, 5));
}

TEST(SplitTable, APersonOfOneClass) {
  const DataSplit parts = split(parse("0,p,x\n1,p,x\n2,q,x\n3,q,y\n4,p,x\n5,q,y\n"), "time-per-class", 0.4);
  EXPECT_THAT(parts.train.values, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(parts.test.values, ElementsAre(4, 5));
}

TEST(SplitTable, SomeoneMustHaveATestRow) {
  for (const double fraction : {0.3, 0.9}) {
    EXPECT_EQ(input_error_of([&] { split(parse("1,p,x\n2,q,x\n"), "time", fraction); }),
              fmt::format("t: found no test row (2 rows, test_fraction {}, every person keeps a training "
                          "row), expected more rows or a larger test_fraction",
                          fraction));
  }
}

TEST(SplitTable, DroppedRowsAreTheTrainingPart) {
  const DataSplit parts = split(parse("1,p,x\n,p,x\n2,p,x\n3,q,\n4,q,x\n"), "time", 0.5);
  EXPECT_EQ(parts.train.dropped_rows, 2u);
  EXPECT_EQ(parts.test.dropped_rows, 0u);
}

TEST(ReadSplit, KeysAndDefaults) {
  const auto read = [](const std::string& keys) {
    const Config config = Config::parse("[data]\n" + keys, "r.toml");
    const SplitSpec spec = read_split(config.section("data"), {"time-per-class", 0.5});
    config.reject_unknown_keys();
    return spec;
  };
  EXPECT_EQ(read("").kind, "time-per-class");
  EXPECT_EQ(read("").test_fraction, 0.5);
  EXPECT_EQ(read("split = 'stratified'").kind, "stratified");
  EXPECT_EQ(read("test_fraction = 0.25").test_fraction, 0.25);
  EXPECT_THAT(input_error_of([&] { read("split = 'halves'"); }), HasSubstr("r.toml: line 2: data.split"));
  EXPECT_THAT(input_error_of([&] { read("split = 'halves'"); }),
              HasSubstr("time, time-per-class, stratified"));
  EXPECT_THAT(input_error_of([&] { read("test_fraction = 0"); }), HasSubstr("data.test_fraction"));
}

}  // namespace
}  // namespace bitfed
