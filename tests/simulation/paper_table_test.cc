#include "bitfed/simulation/paper_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bitfed/base/byte_io.h"
#include "tests/base/error_text.h"
#include "tests/base/temporary_folder.h"

namespace bitfed {
namespace {

namespace fs = std::filesystem;

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kTable = R"toml(title = "A table"
source = "A paper"
row_header = ["data", "split"]
seeds = [0, 20]
set = ["client.epochs=5"]
quick = ["client.epochs=1"]
clients_from = "fedtm-bank"
notes = ["one", "two"]
[[column]]
key = "fedtmos"
name = "FedTMOS"
method = "fedtmos"
metric = "accuracy"
[[column]]
key = "bank"
name = "fedtm-bank"
method = "fedtm-bank"
metric = "accuracy"
against = "fedtmos"
[[row]]
name = "mnist/Dir(0.05)"
recipe = "mnist.toml"
set = ["data.partition.alpha=0.05"]
paper = { fedtmos = [93.80, 3.81] }
[[row]]
name = "mnist/S(2)"
recipe = "mnist.toml"
paper = { fedtmos = [92] }
[[row]]
name = "fashion-mnist/S(2)"
recipe = "fashion-mnist.toml"
)toml";

PaperTable parse(const std::string& text = kTable) {
  return parse_paper_table(text, "recipes/papers/some-paper-table1.toml");
}

std::string replaced(const std::string& what, const std::string& by) {
  std::string text = kTable;
  const size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), by);
}

std::string fault(const std::string& what, const std::string& by) {
  return error_text([&] { parse(replaced(what, by)); });
}

TEST(PaperTable, ReadsWhatIsThere) {
  const PaperTable table = parse();
  EXPECT_EQ(table.name, "some-paper:table1");
  EXPECT_EQ(table.recipes, "recipes");
  EXPECT_EQ(table.title, "A table");
  EXPECT_THAT(table.row_header, ElementsAre("data", "split"));
  EXPECT_THAT(table.seeds, ElementsAre(0, 20));
  EXPECT_THAT(table.set, ElementsAre("client.epochs=5"));
  EXPECT_THAT(table.quick, ElementsAre("client.epochs=1"));
  EXPECT_EQ(table.clients_from, "fedtm-bank");
  EXPECT_THAT(table.notes, ElementsAre("one", "two"));
  ASSERT_EQ(table.columns.size(), 2u);
  EXPECT_EQ(table.columns[0].metric.unit, "%");
  EXPECT_EQ(table.columns[1].against, "fedtmos");
  ASSERT_EQ(table.rows.size(), 3u);
  EXPECT_EQ(table.rows[0].paper[0]->mean, 93.80);
  EXPECT_EQ(table.rows[0].paper[0]->deviation, 3.81);
  EXPECT_FALSE(table.rows[0].paper[1]);
  EXPECT_EQ(table.rows[1].paper[0]->deviation, 0);
  EXPECT_FALSE(table.rows[2].paper[0]);
  EXPECT_THAT(table.rows[0].set, ElementsAre("data.partition.alpha=0.05"));
}

TEST(PaperTable, SaysWhatIsWrong) {
  EXPECT_THAT(fault("title = \"A table\"", ""),
              HasSubstr("some-paper-table1.toml: title: missing, expected a string"));
  EXPECT_THAT(fault("notes", "nodes"), HasSubstr("line 8: nodes: unknown key (did you mean 'notes'?)"));
  EXPECT_THAT(fault("seeds = [0, 20]", "seeds = [3, 3]"),
              HasSubstr("seeds: found [3, 3], expected one seed"));
  EXPECT_THAT(fault("seeds = [0, 20]", "seeds = 'a'"),
              HasSubstr("found the string 'a', expected an array of whole"));
  EXPECT_THAT(
      fault("method = \"fedtmos\"", "method = \"fedtmoss\""),
      HasSubstr("line 12: column.0.method: no method is called 'fedtmoss' (did you mean 'fedtmos'?)"));
  EXPECT_THAT(fault("method = \"fedtmos\"", ""),
              HasSubstr("column.1.method: expected a method in every column, or in none"));
  EXPECT_THAT(fault("clients_from = \"fedtm-bank\"", "clients_from = \"x\""),
              HasSubstr("no method is called 'x'"));
  EXPECT_THAT(
      fault("metric = \"accuracy\"", "metric = \"speed\""),
      HasSubstr(
          "column.0.metric: found 'speed', expected one of: accuracy, f1, f1-macro, balanced, local, binarised, upload"));
  EXPECT_THAT(fault("against = \"fedtmos\"", "against = \"none\""),
              HasSubstr("column.1.against: found 'none', expected the key of a column"));
  EXPECT_THAT(fault("key = \"bank\"", "key = \"fedtmos\""),
              HasSubstr("column.1.key: found 'fedtmos' a second time"));
  EXPECT_THAT(fault("mnist/S(2)", "mnist/Dir(0.05)"),
              HasSubstr("row.1.name: found 'mnist/Dir(0.05)' a second time"));
  EXPECT_THAT(fault("mnist/S(2)", "mnist"),
              HasSubstr("row.1.name: found 'mnist', expected 2 parts set apart by '/'"));
  EXPECT_THAT(fault("{ fedtmos = [92] }", "{ fedtmoz = [92] }"),
              HasSubstr("row.1.paper.fedtmoz: unknown key"));
  EXPECT_THAT(fault("{ fedtmos = [92] }", "{ fedtmos = [1, 2, 3] }"),
              HasSubstr("found 3 values, expected [mean] or [mean, standard deviation]"));
  EXPECT_THAT(fault("{ fedtmos = [92] }", "{ fedtmos = ['92'] }"),
              HasSubstr("row.1.paper.fedtmos: found the string '92', expected an array of numbers"));
  EXPECT_THAT(fault("data.partition.alpha=0.05", "data.partition.alpha"),
              HasSubstr("row.0.set: found 'data.partition.alpha', expected key=value"));
  EXPECT_THAT(fault("recipe = \"fashion-mnist.toml\"", ""), HasSubstr("row.2.recipe: missing"));
  EXPECT_THAT(error_text([] { parse("title = 'x'\nrow_header = ['a']\n"); }),
              HasSubstr("expected [[column]] tables"));
  EXPECT_THAT(error_text([] { parse("title = "); }), HasSubstr("table1.toml: line 1: "));
}

TEST(PaperTable, PatternsSelectRows) {
  EXPECT_TRUE(selects_row("mnist", "mnist/Dir(0.1)"));
  EXPECT_TRUE(selects_row("mnist/Dir(0.1)", "mnist/Dir(0.1)"));
  EXPECT_TRUE(selects_row("*/S(*)", "mnist/S(2)"));
  EXPECT_TRUE(selects_row("*", "mnist/S(2)"));
  EXPECT_TRUE(selects_row("mn?st/Dir(0.[13])", "mnist/Dir(0.3)"));
  EXPECT_FALSE(selects_row("mnist", "fashion-mnist/S(2)"));
  EXPECT_FALSE(selects_row("mnist/Dir", "mnist/Dir(0.1)"));
  EXPECT_FALSE(selects_row("", "mnist"));

  const PaperTable table = parse();
  EXPECT_THAT(select_rows(table, {}), ElementsAre(0, 1, 2));
  EXPECT_THAT(select_rows(table, std::vector<std::string>{"mnist"}), ElementsAre(0, 1));
  EXPECT_THAT(select_rows(table, std::vector<std::string>{"*S(2)", "fashion*"}), ElementsAre(1, 2));
  EXPECT_THAT(
      error_text([&] { select_rows(table, std::vector<std::string>{"mnist/S(3)"}); }),
      HasSubstr("--rows mnist/S(3): selects no row of some-paper:table1 (did you mean 'mnist/S(2)'?)"));
}

TEST(PaperTable, SeedsAreTheTables) {
  const PaperTable table = parse();
  EXPECT_THAT(select_seeds(table, {}), ElementsAre(0, 20));
  EXPECT_THAT(select_seeds(table, std::vector<int64_t>{20}), ElementsAre(20));
  EXPECT_EQ(error_text([&] { select_seeds(table, std::vector<int64_t>{7}); }),
            "--seeds 7: not a seed of some-paper:table1, expected some of 0, 20");
}

TEST(PaperTable, TheFirstFolderThatHasItCounts) {
  const TemporaryFolder folder;
  const std::vector<fs::path> folders = {folder / "mine", folder / "installed"};
  for (const fs::path& recipes : folders) create_folders(recipes / "papers");
  EXPECT_TRUE(paper_table_names(folders).empty());
  write_file_atomically(folders[1] / "papers" / "some-paper-table1.toml", std::string_view(kTable));
  write_file_atomically(folders[1] / "papers" / "some-paper-table2.toml", std::string_view(kTable));
  write_file_atomically(folders[0] / "papers" / "some-paper-table2.toml", std::string_view(kTable));
  EXPECT_THAT(paper_table_names(folders), ElementsAre("some-paper:table1", "some-paper:table2"));
  EXPECT_EQ(load_paper_table("some-paper:table1", folders).recipes, folders[1]);
  EXPECT_EQ(load_paper_table("some-paper:table2", folders).recipes, folders[0]);
  const std::string missing = error_text([&] { load_paper_table("some-paper:table3", folders); });
  EXPECT_THAT(missing, HasSubstr("no table is called 'some-paper:table3' (did you mean"));
  EXPECT_THAT(missing, HasSubstr("looked for some-paper-table3.toml in " + (folders[0] / "papers").string() +
                                 ", " + (folders[1] / "papers").string()));
  EXPECT_THAT(error_text([&] { load_paper_table("../papers/some-paper-table1", folders); }),
              HasSubstr("no table is called"));
}

// The files that ship.
TEST(PaperTable, AllTablesOfTheRepositoryCanBeRead) {
  const std::vector<fs::path> folders = {fs::path(BITFED_TESTS_DIR) / ".." / "recipes"};
  const std::vector<std::string> names = paper_table_names(folders);
  EXPECT_THAT(names, ElementsAre("fed-bin-mlp:lambda", "fed-bin-mlp:table1", "fedbnn:table1", "fedbnn:table2",
                                 "fedbnn:table3", "fedbnn:table4", "fedbnn:table5", "fedbnn:table6",
                                 "fedtmos:table1", "fedtmos:table2", "fedtmos:table3", "fedtmos:table5",
                                 "fedtmos:table6", "fedtmos:table7"));
  for (const std::string& name : names) {
    const PaperTable table = load_paper_table(name, folders);
    // The FedTMOS paper's tables have no gaps; Fed-Bin-MLP's few figures stand beside runs of our own.
    if (!name.starts_with("fedtmos")) continue;
    for (const PaperRow& row : table.rows) {
      for (size_t i = 0; i < table.columns.size(); ++i) {
        EXPECT_EQ(row.paper[i].has_value(), table.columns[i].against.empty()) << name << ' ' << row.name;
      }
    }
  }
}

TEST(Metrics, ComeFromTheSummary) {
  RunSummary summary;
  summary.accuracy = 0.9817;
  summary.upload_bytes_per_client = 20300;
  summary.model_bytes = 152000;
  summary.aggregation_seconds = 0.5;
  summary.train_seconds = 91.0;
  summary.clients = 10;
  summary.local_accuracy_mean = 0.25;
  summary.binarized_accuracy = 0.5;
  summary.model_bytes_paper = 48860;
  const auto value = [&](const std::string& name) -> std::optional<double> {
    for (const Metric& metric : metrics()) {
      if (metric.name == name) return metric.value(summary);
    }
    return std::nullopt;
  };
  EXPECT_DOUBLE_EQ(*value("accuracy"), 98.17);
  EXPECT_FALSE(value("f1"));
  EXPECT_DOUBLE_EQ(*value("local"), 25);
  EXPECT_DOUBLE_EQ(*value("upload"), 0.0203);
  EXPECT_DOUBLE_EQ(*value("model"), 0.152);
  EXPECT_DOUBLE_EQ(*value("size"), 148.4375);
  EXPECT_DOUBLE_EQ(*value("binarised"), 50);
  EXPECT_DOUBLE_EQ(*value("paper-memory"), 0.04886);
  EXPECT_FALSE(value("paper-flops"));
  EXPECT_NEAR(*value("airtime"), 541.33, 0.01);
  EXPECT_DOUBLE_EQ(*value("aggregation"), 0.5);
  EXPECT_DOUBLE_EQ(*value("training"), 9.1);
}

}  // namespace
}  // namespace bitfed
