#include "bitfed/data/csv.h"

#include "tests/data/hand_made.h"

namespace bitfed {
namespace {

using hand_made::input_error_of;
using testing::ElementsAre;
using testing::HasSubstr;

const CsvOptions kLabel = {.label = "label", .person = "", .ignore = {}};

Dataset parse(std::string_view text, const CsvOptions& options = kLabel) {
  return parse_csv(text, "dir/t.csv", options);
}
std::string error(std::string_view text, const CsvOptions& options = kLabel) {
  return input_error_of([&] { parse(text, options); });
}

TEST(Csv, NumbersLabelsAndNames) {
  const Dataset table = parse("a,label,b\n1,dog,-2.5e1\n+0.5,cat, 3 \n");
  EXPECT_EQ(table.name, "t");
  EXPECT_TRUE(table.is_table());
  EXPECT_THAT(table.columns, ElementsAre("a", "b"));
  EXPECT_THAT(table.values, ElementsAre(1.f, -25.f, 0.5f, 3.f));
  EXPECT_THAT(table.class_names, ElementsAre("cat", "dog"));
  EXPECT_THAT(table.labels, ElementsAre(1, 0));
  EXPECT_TRUE(table.groups.empty());
}

TEST(Csv, ByteOrderMarkCrlfQuotesEmptyLinesAndNoLastNewline) {
  const Dataset table =
      parse("\xef\xbb\xbf\"a\",label\r\n\r\n\"1\",\"says \"\"hi, you\"\"\"\r\n2,\"\"\"x\"\"\"");
  EXPECT_THAT(table.columns, ElementsAre("a"));
  EXPECT_THAT(table.values, ElementsAre(1.f, 2.f));
  EXPECT_THAT(table.class_names, ElementsAre("\"x\"", "says \"hi, you\""));
}

TEST(Csv, WholeNumbersSortByValue) {
  EXPECT_THAT(parse("a,label\n1,10\n1,9\n1,-1\n").class_names, ElementsAre("-1", "9", "10"));
  EXPECT_THAT(parse("a,label\n1,10\n1,9\n1,x\n").class_names, ElementsAre("10", "9", "x"));
}

TEST(Csv, People) {
  const Dataset one =
      parse("a,who,label\n1,10,x\n2,9,x\n3,10,x\n", {.label = "label", .person = "who", .ignore = {}});
  EXPECT_THAT(one.group_names, ElementsAre("9", "10"));
  EXPECT_THAT(one.groups, ElementsAre(1, 0, 1));
  EXPECT_THAT(one.columns, ElementsAre("a"));
  const Dataset two = parse("age,w,a,label\n20,60,1,x\n20,61,2,x\n20,60,3,x\n",
                            {.label = "label", .person = "age, w", .ignore = {}});
  EXPECT_THAT(two.group_names, ElementsAre("20,60", "20,61"));
  EXPECT_THAT(two.groups, ElementsAre(0, 1, 0));
  // A column whose own name has a comma.
  const Dataset comma = parse("\"a,b\",c,label\n7,1,x\n", {.label = "label", .person = "a,b", .ignore = {}});
  EXPECT_THAT(comma.group_names, ElementsAre("7"));
}

TEST(Csv, IgnoredColumnsMayHoldAnything) {
  const Dataset table = parse(",a,device,label\n1,2,apple,x\n,3,,y\n",
                              {.label = "label", .person = "", .ignore = {"", "device"}});
  EXPECT_THAT(table.columns, ElementsAre("a"));
  EXPECT_THAT(parse(",label\n1,x\n").columns, ElementsAre("column 1"));
}

TEST(Csv, BadCellsNameLineAndColumn) {
  EXPECT_EQ(error("a,label\n1,x\n,y\n"), "dir/t.csv: line 3: column 'a' is empty, expected a number");
  EXPECT_EQ(error("a,label\n1,\n"), "dir/t.csv: line 2: column 'label' is empty, expected a text");
  for (const std::string cell :
       {"x", "1x", "0x10", "--1", "+-1", "+", "1e999", "3.5e38", "nan", "NaN", "inf", "-inf", "1 2", "1;2"}) {
    EXPECT_EQ(error("a,label\n" + cell + ",x\n"),
              fmt::format("dir/t.csv: line 2: column 'a' is {:?}, expected a finite number",
                          cell[0] == '+' && cell.size() > 1 && cell[1] != '-' ? cell.substr(1) : cell));
  }
  EXPECT_THAT(error("a,label\n\"1\n2\",x\n"), HasSubstr("is \"1\\n2\""));
  EXPECT_THAT(error("a,label\n" + std::string(1000, 'z') + ",x\n"), HasSubstr("zzz\"…, expected"));
  EXPECT_THAT(error("a,label\n1,\"x\ny\"\n"), HasSubstr("control characters"));
  EXPECT_THAT(error("a,label,who\n1,x,\n", {.label = "label", .person = "who", .ignore = {}}),
              HasSubstr("column 'who' is empty"));
}

TEST(Csv, LineNumbersCountQuotedNewlines) {
  const CsvOptions options = {.label = "label", .person = "", .ignore = {"note"}};
  EXPECT_THAT(error("a,note,label\n1,\"two\nlines\",x\n\nbad,,x\n", options),
              HasSubstr("line 5: column 'a'"));
}

TEST(Csv, BadStructure) {
  EXPECT_EQ(error(""), "dir/t.csv: is empty, expected a CSV table with a header");
  EXPECT_EQ(error("\n\r\n"), "dir/t.csv: is empty, expected a CSV table with a header");
  EXPECT_EQ(error("a,label\n"), "dir/t.csv: has a header but no rows");
  EXPECT_EQ(error("label\nx\n"), "dir/t.csv: has no column of numbers to learn from");
  EXPECT_EQ(error("a,label\n1,x,2\n"), "dir/t.csv: line 2: 3 fields, expected 2 as in the header");
  EXPECT_EQ(error("a,label\n1\n"), "dir/t.csv: line 2: 1 fields, expected 2 as in the header");
  EXPECT_EQ(error("a,label\n\"1,x\n"), "dir/t.csv: line 2: a quoted field is not closed");
  EXPECT_EQ(error("a,label\n1\",x\n"),
            "dir/t.csv: line 2: a quote inside a field that does not start with one");
  EXPECT_EQ(error("a,label\n\"1\"2,x\n"), "dir/t.csv: line 2: text follows a closing quote");
  EXPECT_EQ(error("a,label,a\n1,x,2\n"), "dir/t.csv: line 1: columns 1 and 3 are both named 'a'");
  EXPECT_THAT(error("\"a\nb\",label\n1,x\n"), HasSubstr("control characters"));
}

TEST(Csv, MissingColumnsSuggestTheNearest) {
  EXPECT_EQ(error("a,labels\n1,x\n"), "dir/t.csv: has no column 'label' (label) (did you mean 'labels'?)");
  EXPECT_THAT(error("a,subject,label\n1,2,x\n", {.label = "label", .person = "subjekt", .ignore = {}}),
              HasSubstr("has no column 'subjekt' (person) (did you mean 'subject'?)"));
  EXPECT_THAT(error("a,label\n1,x\n", {.label = "label", .person = "", .ignore = {"b"}}),
              HasSubstr("'b' (ignore)"));
}

TEST(Csv, TooManyClasses) {
  std::string text = "a,label\n";
  for (int i = 0; i < 65536; ++i) text += fmt::format("1,{}\n", i);
  EXPECT_THAT(error(text), HasSubstr("more than 65535 different labels"));
}

TEST(Csv, RoundTrip) {
  const hand_made::Folder folder;
  std::string text = "x,y,label\n";
  std::vector<float> expected;
  for (int i = 0; i < 1000; ++i) {
    expected.push_back(static_cast<float>(i) / 7);
    expected.push_back(-static_cast<float>(i * i) * 1e-20f);
    text += fmt::format("{},{},c{}\n", expected[expected.size() - 2], expected.back(), i % 3);
  }
  folder.write("t.csv", text);
  EXPECT_EQ(load_csv(folder.path() / "t.csv", kLabel).values, expected);
}

Dataset table_of(size_t rows) {
  std::string text = "a,who,label\n";
  for (size_t i = 0; i < rows; ++i)
    text += fmt::format("{},{},{}\n", i, i % 2 == 0 ? "p" : "q", i < rows / 2 ? "x" : "y");
  return parse(text, {.label = "label", .person = "who", .ignore = {}});
}

TEST(SplitTable, LastRowsOfEachPersonAreForTesting) {
  const DataSplit split = split_table(table_of(10), 0.4);
  EXPECT_THAT(split.train.values, ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(split.test.values, ElementsAre(6, 7, 8, 9));
  EXPECT_EQ(split.train.class_names, split.test.class_names);
  EXPECT_THAT(split.test.groups, ElementsAre(0, 1, 0, 1));
}

TEST(SplitTable, LastRowsOfEachClassOfAPerson) {
  const DataSplit split = split_table(table_of(8), 0.5, SplitUnit::kPersonAndClass);
  EXPECT_THAT(split.train.values, ElementsAre(0, 1, 4, 5));
  EXPECT_THAT(split.test.values, ElementsAre(2, 3, 6, 7));
}

TEST(SplitTable, WithoutPeopleTheLastRowsOfAll) {
  const DataSplit split = split_table(parse("a,label\n1,x\n2,x\n3,x\n4,x\n"), 0.25);
  EXPECT_THAT(split.test.values, ElementsAre(4));
}

TEST(SplitTable, NeitherSideMayBeEmpty) {
  EXPECT_THAT(input_error_of([] { split_table(parse("a,label\n1,x\n"), 0.3); }),
              HasSubstr("1 rows cannot be cut"));
  EXPECT_THAT(input_error_of([] { split_table(parse("a,label\n1,x\n"), 0.9); }),
              HasSubstr("1 rows cannot be cut"));
}

}  // namespace
}  // namespace bitfed
