#include "bitfed/report/reproduction/reproduction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "bitfed/report/charts/charts.h"
#include "tests/report/xml_check.h"

namespace bitfed {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::string kHostile = "<script>alert('1')</script>\"&,|";

// Two rows of three seeds: the first has run, the second has one seed of one column.
ReproducedTable small_table() {
  ReproducedTable table;
  table.name = "p:t";
  table.title = "A table";
  table.source = "A paper";
  table.seeds = 3;
  table.row_header = {"data", "split"};
  table.columns = {{"FedTMOS", "%", 2, false, std::nullopt}, {"bank", "%", 2, false, 0}};
  table.rows = {{{"mnist", "Dir(0.1)"},
                 "",
                 {{Published{96.6, 1.85}, {98, 98, 98.6}}, {Published{96.6, 1.85}, {94, 95, 93}}}},
                {{"mnist", "S(2)"}, "", {{Published{92.94, 0.51}, {}}, {Published{92.94, 0.51}, {92.5}}}}};
  table.notes = {"A note"};
  table.machines = {"A machine"};
  return table;
}

TEST(Reproduction, MeanAndDeviationByHand) {
  EXPECT_DOUBLE_EQ(mean_of({1, 2, 6}), 3);
  EXPECT_DOUBLE_EQ(deviation_of({1, 2, 6}), std::sqrt((4 + 1 + 9) / 3.0));  // of the population
  EXPECT_DOUBLE_EQ(deviation_of({7}), 0);
}

TEST(Reproduction, MarksWhatIsWorseByMoreThanThePapersDeviation) {
  const ReproducedColumn accuracy{"a", "%", 2, false, {}};
  const ReproducedColumn seconds{"s", "s", 2, true, {}};
  const auto cell = [](double ours) { return ReproducedCell{Published{10, 2}, {ours}}; };
  EXPECT_TRUE(is_worse(cell(7.9), accuracy));
  EXPECT_FALSE(is_worse(cell(8), accuracy));  // just within
  EXPECT_FALSE(is_better(cell(12), accuracy));
  EXPECT_TRUE(is_better(cell(12.1), accuracy));
  EXPECT_TRUE(is_worse(cell(12.1), seconds));
  EXPECT_TRUE(is_better(cell(7.9), seconds));
  EXPECT_FALSE(is_worse({std::nullopt, {1}}, accuracy));
  EXPECT_FALSE(is_worse({Published{10, 2}, {}}, accuracy));
}

TEST(Reproduction, Texts) {
  const ReproducedColumn column{"a", "%", 2, false, {}};
  const ReproducedCell cell{Published{96.6, 1.85}, {98, 98, 98.6}};
  EXPECT_EQ(ours_text(cell, column, 3), "98.20 ± 0.28");
  EXPECT_EQ(ours_text(cell, column, 4), "98.20 ± 0.28 (3 of 4 seeds)");
  EXPECT_EQ(ours_text({{}, {5}}, column, 1), "5.00");
  EXPECT_EQ(ours_text({}, column, 3), "–");
  EXPECT_EQ(paper_text(cell, column), "96.60 ± 1.85");
  EXPECT_EQ(paper_text({Published{0.04, 0}, {}}, column), "0.04");
  EXPECT_EQ(difference_text(cell, column), "+1.60");
  EXPECT_EQ(difference_text({Published{3, 0}, {}}, column), "–");
}

TEST(Reproduction, TextForATerminal) {
  EXPECT_EQ(
      reproduction_text(small_table(), {0}),
      "A table\n\n"
      "                                               FedTMOS                        bank\n"
      "data/split             paper          ours  difference            ours  difference\n"
      "mnist/Dir(0.1)  96.60 ± 1.85  98.20 ± 0.28       +1.60  94.00 ± 0.82 ▼       -2.60\n\n"
      "Mean ± standard deviation of 3 seeds, in %. ▼: worse than the paper's mean by more than the paper's "
      "standard deviation. –: not run. bank is compared with the paper's FedTMOS.\n"
      "- A note\n");
}

TEST(Reproduction, ASweepHasNoPaperBesideIt) {
  ReproducedTable table = small_table();
  for (ReproducedRow& row : table.rows) {
    for (ReproducedCell& cell : row.cells) cell.paper.reset();
  }
  table.columns[1].against.reset();
  EXPECT_THAT(reproduction_text(table, {0}), HasSubstr("\n\n"
                                                       "data/split           FedTMOS          bank\n"
                                                       "mnist/Dir(0.1)  98.20 ± 0.28  94.00 ± 0.82\n"));
  EXPECT_THAT(reproduction_markdown(table), HasSubstr("| data | split | FedTMOS | bank |\n"));
}

TEST(Reproduction, Markdown) {
  const std::string text = reproduction_markdown(small_table());
  EXPECT_THAT(
      text,
      HasSubstr("| data | split | FedTMOS, paper | FedTMOS, ours | FedTMOS, difference | bank, ours | bank, "
                "to the paper's FedTMOS |\n| --- | --- |"));
  EXPECT_THAT(
      text,
      HasSubstr("| mnist | Dir(0.1) | 96.60 ± 1.85 | 98.20 ± 0.28 | +1.60 | 94.00 ± 0.82 ▼ | -2.60 |\n"));
  EXPECT_THAT(text, HasSubstr("| mnist | S(2) | 92.94 ± 0.51 | – | – | 92.50 (1 of 3 seeds) | -0.44 |\n"));
  EXPECT_THAT(text, HasSubstr("- A note\n"));
  EXPECT_THAT(text, HasSubstr("- Run on: A machine.\n"));
}

TEST(Reproduction, Csv) {
  ReproducedTable table = small_table();
  table.rows[1].not_run = "no data, none";
  const std::string text = reproduction_csv(table);
  EXPECT_EQ(occurrences(text, "\n"), 5u);
  EXPECT_THAT(text, HasSubstr("p:t,,mnist/S(2),FedTMOS,%,FedTMOS,92.94,0.51,,,0,,,\"no data, none\"\n"));
  EXPECT_THAT(text, HasSubstr("p:t,,mnist/S(2),bank,%,FedTMOS,92.94,0.51,92.5,0,1,"));
  EXPECT_THAT(text, HasSubstr(",no,1 of 3 seeds\n"));
  EXPECT_THAT(text, HasSubstr(",yes,done\n"));
}

TEST(Reproduction, AQuickTrialIsMarkedEverywhere) {
  ReproducedTable table = small_table();
  table.quick = "seed 0 alone, client.epochs=3";
  const std::string mark = "QUICK TRIAL, not the paper's table: seed 0 alone, client.epochs=3.";
  EXPECT_THAT(reproduction_text(table, {0}), HasSubstr(mark));
  EXPECT_THAT(reproduction_markdown(table), HasSubstr(mark));
  EXPECT_THAT(reproduction_csv(table), HasSubstr("p:t,\"seed 0 alone, client.epochs=3\",mnist"));
  const std::string page = reproduction_page(table);
  EXPECT_THAT(page, HasSubstr("<title>Quick trial: A table</title>"));
  EXPECT_THAT(page, HasSubstr("QUICK TRIAL, not the paper"));
  const std::string full = reproduction_page(small_table());
  EXPECT_THAT(full, Not(HasSubstr("QUICK")));
  EXPECT_THAT(full, Not(HasSubstr("Quick")));
}

TEST(Reproduction, UnitsStandInTheHeadWhereTheyDiffer) {
  ReproducedTable table = small_table();
  EXPECT_EQ(column_title(table, 0), "FedTMOS");
  EXPECT_THAT(legend_text(table), HasSubstr("in %"));
  table.columns[1].unit = "s";
  EXPECT_EQ(column_title(table, 1), "bank [s]");
  EXPECT_THAT(legend_text(table), Not(HasSubstr("in %")));
}

TEST(Reproduction, PageIsWellFormedAndHarmless) {
  ReproducedTable table = small_table();
  table.title = table.source = table.quick = table.name = kHostile;
  table.row_header = {kHostile, kHostile};
  table.columns[0].name = table.columns[0].unit = kHostile;
  table.rows[0].name[0] = table.rows[0].not_run = kHostile;
  table.notes = table.machines = {kHostile};
  const std::string page = reproduction_page(table);
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  const size_t begin = page.find("<body>");
  EXPECT_EQ(xml_fault(page.substr(begin, page.find("</html>") - begin)), "");
  EXPECT_THAT(page, HasSubstr("class=\"worse\">-2.60<"));
  EXPECT_THAT(page, HasSubstr("class=\"same\">+1.60<"));
}

TEST(RangeChart, PlacesDotsAndWhiskers) {
  // Labels of one character leave 18.6 to the left; the plot ends at 506.
  const RangeChart chart{
      "t", "%", 1, false, {"a"}, {{"paper", true, {RangeMark{10, 10}}}, {"ours", false, {RangeMark{20, 0}}}}};
  const std::string svg = range_chart(chart);
  EXPECT_EQ(xml_fault(svg), "");
  EXPECT_THAT(svg, HasSubstr(R"(<circle cx="262.3")"));
  EXPECT_THAT(svg, HasSubstr(R"(<circle cx="506")"));
  EXPECT_THAT(svg, HasSubstr(R"(<line x1="18.6" y1="57" x2="506" y2="57")"));  // the whisker of the first
  EXPECT_THAT(svg, HasSubstr("a, ours: 20.0 ± 0.0 %"));
}

TEST(RangeChart, SaysWhenThereIsNothing) {
  const std::string svg = range_chart({"t", "%", 1, false, {"a"}, {{"ours", false, {std::nullopt}}}});
  EXPECT_EQ(xml_fault(svg), "");
  EXPECT_THAT(svg, HasSubstr("nothing was measured"));
}

TEST(RangeChart, OneValueAlone) {
  const std::string svg = range_chart({"t", "%", 1, false, {"a"}, {{"ours", false, {RangeMark{50, 0}}}}});
  EXPECT_EQ(xml_fault(svg), "");
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
}

TEST(Reproduction, SampleDeviationOfASweep) {
  EXPECT_DOUBLE_EQ(deviation_of({1, 2, 6}, true), std::sqrt((4 + 1 + 9) / 2.0));
  const ReproducedColumn column{"a", "%", 2, false, {}, true};
  EXPECT_EQ(ours_text({{}, {1, 2, 6}}, column, 3), "3.00 ± 2.65");
}

TEST(Reproduction, ASweepHasOneRowOfHeadings) {
  ReproducedTable table = small_table();
  table.is_sweep = true;
  table.columns = {{"accuracy", "%", 2, false, {}, true}};
  for (ReproducedRow& row : table.rows) row.cells = {{std::nullopt, {98, 98, 98.6}}};
  const std::string page = reproduction_page(table);
  EXPECT_THAT(page, Not(HasSubstr(">ours</th>")));
  EXPECT_THAT(page, HasSubstr("rowspan=\"1\" class=\"name\">data</th>"));
  EXPECT_THAT(reproduction_latex(table),
              HasSubstr("\\toprule\ndata & split & \\multicolumn{1}{c}{accuracy} \\\\\n\\midrule\n"));
  EXPECT_THAT(reproduction_page(small_table()), HasSubstr(">ours</th>"));
}

TEST(Reproduction, Latex) {
  ReproducedTable table = small_table();
  table.rows[0].name[0] = "50 % of_a&b";
  const std::string text = reproduction_latex(table);
  EXPECT_THAT(text, HasSubstr("\\begin{tabular}{llrrrrr}"));
  EXPECT_THAT(text,
              HasSubstr("50 \\% of\\_a\\&b & Dir(0.1) & 96.60 $\\pm$ 1.85 & 98.20 $\\pm$ 0.28 & $+1.60$ & "
                        "94.00 $\\pm$ 0.82 $\\triangledown$ & $-2.60$ \\\\\n"));
  EXPECT_THAT(text, HasSubstr("\\multicolumn{3}{c}{FedTMOS} & \\multicolumn{2}{c}{bank} \\\\\n"));
  EXPECT_THAT(text, HasSubstr("% Mean ± standard deviation of 3 seeds"));
  EXPECT_EQ(text.find("92.94 $\\pm$ 0.51 & -- & --") == std::string::npos, false);
}

}  // namespace
}  // namespace bitfed
