#include "bitfed/data/formats/csv.h"

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

TEST(Csv, FilesThatAreTakenForCsv) {
  EXPECT_EQ(error("\x1f\x8b\x08"), "dir/t.csv: found a gzip file, expected CSV in UTF-8");
  EXPECT_THAT(error("PK\x03\x04"), HasSubstr("found a ZIP archive, perhaps a spreadsheet"));
  EXPECT_THAT(error("PAR1"), HasSubstr("found a Parquet file"));
  EXPECT_THAT(error("\xff\xfe"
                    "a"),
              HasSubstr("found UTF-16, expected CSV in UTF-8"));
  EXPECT_EQ(error("a;label\n1;x\n"),
            "dir/t.csv: line 1: found columns separated by semicolons, expected commas");
  EXPECT_THAT(error("a\tlabel\n1\tx\n"), HasSubstr("separated by tabs"));
  EXPECT_THAT(error("label\rx\r"), HasSubstr("lines that end in a carriage return alone"));
}

// What DataFrame.to_csv writes unless it is told index=False.
TEST(Csv, AnIndexIsNotLearnedFrom) {
  const std::string rows = "0,5,x\n1,4,y\n3,6,x\n";  // the third row was dropped before
  EXPECT_EQ(
      error(",a,label\n" + rows),
      "dir/t.csv: column 'column 1' counts the rows, as a data frame's index does; leave it out (ignore), or "
      "name it");
  EXPECT_THAT(error("Unnamed: 0,a,label\n" + rows), HasSubstr("column 'Unnamed: 0' counts the rows"));
  EXPECT_THAT(error("index,a,label\n" + rows), HasSubstr("column 'index' counts the rows"));
  EXPECT_THAT(parse(",a,label\n" + rows, {.label = "label", .person = "", .ignore = {"column 1"}}).columns,
              ElementsAre("a"));
  EXPECT_THAT(parse("time,a,label\n" + rows).columns, ElementsAre("time", "a"));
  EXPECT_THAT(parse(",a,label\n2,5,x\n1,4,y\n3,6,x\n").columns, ElementsAre("column 1", "a"));
  EXPECT_THAT(parse(",a,label\n1,5,x\n1.5,4,y\n3,6,x\n").columns, ElementsAre("column 1", "a"));
  // A model that has such a column finds it.
  EXPECT_THAT(
      parse(",a,label\n" + rows, {.label = "label", .person = "", .ignore = {}, .only = {"column 1"}}).values,
      ElementsAre(0, 1, 3));
}

TEST(Csv, BadCellsNameLineAndColumn) {
  for (const std::string cell : {"x", "1x", "0x10", "--1", "+-1", "+", "1e999", "3.5e38", "NAN", "-nan",
                                 "Null", "na", "none", "null1", "inf", "-inf", "1 2", "1;2"}) {
    EXPECT_EQ(error("a,label\n" + cell + ",x\n"),
              fmt::format("dir/t.csv: line 2: column 'a' is {:?}, expected a finite number",
                          cell[0] == '+' && cell.size() > 1 && cell[1] != '-' ? cell.substr(1) : cell));
  }
  EXPECT_THAT(error("a,label\n\"1\n2\",x\n"), HasSubstr("is \"1\\n2\""));
  EXPECT_THAT(error("a,label\n" + std::string(1000, 'z') + ",x\n"), HasSubstr("zzz\"…, expected"));
  EXPECT_THAT(error("a,label\n1,\"x\ny\"\n"), HasSubstr("control characters"));
}

const CsvOptions kPeople = {.label = "label", .person = "who", .ignore = {"note"}};

TEST(Csv, RowsWithNullCellsAreDroppedAndCounted) {
  for (const std::string null :
       {"", "  ", "\"\"", "null", "NULL", "NA", "N/A", "NaN", "nan", "None", " NA "}) {
    const std::string head = "a,b,who,label,note\n";
    const std::string first = "1,2,p,x,n\n";
    const std::string last = "3,4,q,y,n\n";
    for (const std::string& row : {null + ",9,p,z,n\n", "9," + null + ",p,z,n\n", "9,9," + null + ",z,n\n",
                                   "9,9,r," + null + ",n\n"}) {
      const Dataset table = parse(head + first + row + last, kPeople);
      EXPECT_EQ(table.dropped_rows, 1u) << row;
      EXPECT_THAT(table.values, ElementsAre(1, 2, 3, 4)) << row;
      EXPECT_THAT(table.class_names, ElementsAre("x", "y")) << "what is dropped makes no class: " << row;
      EXPECT_THAT(table.group_names, ElementsAre("p", "q")) << "nor a person: " << row;
      EXPECT_THAT(table.labels, ElementsAre(0, 1));
      EXPECT_THAT(table.groups, ElementsAre(0, 1));
    }
    // A column that is left out may be empty.
    EXPECT_EQ(parse(head + first + "5,6,p,x," + null + "\n", kPeople).dropped_rows, 0u);
  }
  EXPECT_EQ(parse("a,b,label\n,,\n1,2,x\n,NA,null\n").dropped_rows, 2u) << "a row counts once";
}

TEST(Csv, GarbageBesideANullCellIsAnError) {
  EXPECT_EQ(error("a,b,label\n1,2,x\n,abc,x\n"),
            "dir/t.csv: line 3: column 'b' is \"abc\", expected a finite number");
  EXPECT_EQ(error("a,b,label\n1,2,x\n1e999,,x\n"),
            "dir/t.csv: line 3: column 'a' is \"1e999\", expected a finite number");
  EXPECT_EQ(error("a,b,label\n1,2,x\n,\n"), "dir/t.csv: line 3: 2 fields, expected 3 as in the header");
}

TEST(Csv, AFileOfNullRowsIsRefused) {
  EXPECT_EQ(
      error("a,b,label\n1,,x\n2,NA,x\n"),
      "dir/t.csv: all 2 rows have empty cells, the first in line 2, column 'b'; expected a complete row");
}

TEST(Csv, ConstantColumnsAreColumns) {
  EXPECT_THAT(parse("a,b,label\n1,7,x\n2,7,y\n").values, ElementsAre(1, 7, 2, 7));
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
  EXPECT_EQ(error("label\nx\n"), "dir/t.csv: has no numeric column to learn from");
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

// UCI's tables write ? for a missing value.
TEST(Csv, QuestionMarksAreMissingValues) {
  const Dataset data = parse_csv("a,l\n1,x\n?,y\n3,y\n", "t.csv", {.label = "l", .person = "", .ignore = {}});
  EXPECT_EQ(data.size(), 2u);
  EXPECT_EQ(data.dropped_rows, 1u);
}

TEST(Csv, WhatIsNoLabel) {
  const auto fault = [](const std::string& text, const std::string& person = "") {
    return hand_made::input_error_of(
        [&] { parse_csv(text, "t.csv", {.label = "l", .person = person, .ignore = {}}); });
  };
  EXPECT_EQ(fault("a,l\n1,1.5\n2,2\n"),
            "t.csv: column 'l' holds real values such as \"1.5\", expected classes (label)");
  EXPECT_EQ(fault("a,l\n1,x\n2,y\n", "l"),
            "t.csv: column 'l' is both label and person, expected two columns");
  // As data frames write classes; and versions, which are no numbers.
  EXPECT_EQ(parse_csv("a,l\n1,1.0\n2,2.0\n", "t.csv", {.label = "l", .person = "", .ignore = {}}).size(), 2u);
  EXPECT_EQ(parse_csv("a,l\n1,v1.5\n2,2\n", "t.csv", {.label = "l", .person = "", .ignore = {}}).size(), 2u);
  EXPECT_THAT(fault("a,l\n1,caf\xe9\n2,y\n"), testing::HasSubstr("is not UTF-8"));
}

}  // namespace
}  // namespace bitfed
