#include "bitfed/simulation/reproduction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "bitfed/base/byte_io.h"
#include "bitfed/zoo/network/trainer.h"
#include "tests/base/error_text.h"
#include "tests/base/temporary_folder.h"

namespace bitfed {
namespace {

namespace fs = std::filesystem;

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kRecipe = R"(
[data]
name = "mnist"
partition = { kind = "dirichlet-balanced", clients = 10, alpha = 0.1, allotment = "paper" }
[model]
name = "ctm"
clauses = 100
[client]
epochs = 30
)";

PaperTable table_of(const fs::path& recipes) {
  PaperTable table;
  table.name = "p:t";
  table.source_file = "p-t.toml";
  table.recipes = recipes;
  table.seeds = {0, 20};
  table.quick = {"client.epochs=3"};
  table.clients_from = "fedtm-bank";
  table.columns.resize(2);
  table.columns[0].method = "fedtmos";
  table.columns[1].method = "fedtm-bank";
  table.rows = {{"mnist/Dir(0.1)", "mnist.toml", {"data.partition.alpha=0.1"}, {}},
                {"mnist/Dir(0.3)", "mnist.toml", {"data.partition.alpha=0.3"}, {}}};
  return table;
}

class ReproductionTest : public testing::Test {
 protected:
  ReproductionTest() : table(table_of(folder.path())) {
    write_file_atomically(folder / "mnist.toml", std::string_view(kRecipe));
    options.cells = "cells";
  }
  std::set<fs::path> folders() const {
    std::set<fs::path> found;
    for (const ReproductionCell& cell : plan_cells(table, options)) found.insert(cell.folder);
    return found;
  }

  TemporaryFolder folder;
  PaperTable table;
  ReproductionOptions options;
};

TEST_F(ReproductionTest, ClientsAreTrainedOnceForEachRowAndSeed) {
  const std::vector<ReproductionCell> cells = plan_cells(table, options);
  ASSERT_EQ(cells.size(), 8u);  // rows x seeds x methods
  for (size_t i = 0; i < cells.size(); i += 2) {
    EXPECT_EQ(cells[i].method, "fedtm-bank");
    EXPECT_TRUE(cells[i].reuse.empty());
    EXPECT_EQ(cells[i].cost, 100 * 31);
    EXPECT_EQ(cells[i + 1].method, "fedtmos");
    EXPECT_EQ(cells[i + 1].reuse, cells[i].folder);
    EXPECT_EQ(cells[i + 1].cost, 100);
    EXPECT_EQ(cells[i].row, i / 4);
    EXPECT_EQ(cells[i].seed, i % 4 == 0 ? 0 : 20);
  }
  EXPECT_THAT(cells[0].folder.string(),
              StartsWith("cells/mnist-dir0.1-10-clients-seed-0-30-epochs-fedtm-bank-"));
  EXPECT_EQ(folders().size(), 8u);
}

TEST_F(ReproductionTest, WithoutSharedClientsEveryMethodTrains) {
  table.clients_from.clear();
  for (const ReproductionCell& cell : plan_cells(table, options)) EXPECT_TRUE(cell.reuse.empty());
}

TEST_F(ReproductionTest, CellsAreNamedByWhatIsRun) {
  const std::set<fs::path> before = folders();
  table.rows[0].name = "another name";
  table.rows[0].set.clear();  // the recipe says 0.1 itself
  EXPECT_EQ(folders(), before);
  table.set = {"model.threshold=7"};
  const std::set<fs::path> after = folders();
  for (const fs::path& name : after) EXPECT_FALSE(before.contains(name)) << name;
}

TEST_F(ReproductionTest, QuickIsOneSeedAndOtherCells) {
  const std::set<fs::path> before = folders();
  options.quick = true;
  const std::vector<ReproductionCell> cells = plan_cells(table, options);
  ASSERT_EQ(cells.size(), 4u);
  for (const ReproductionCell& cell : cells) {
    EXPECT_EQ(cell.seed, 0);
    EXPECT_FALSE(before.contains(cell.folder));
    EXPECT_THAT(cell.folder.string(), HasSubstr("-3-epochs-"));
  }
}

TEST_F(ReproductionTest, OtherSettingsAreOtherCells) {
  const std::set<fs::path> before = folders();
  options.set = {"client.epochs=40", "model.threshold=7", "seed=5"};
  const std::vector<ReproductionCell> cells = plan_cells(table, options);
  ASSERT_EQ(cells.size(), 8u);
  for (const ReproductionCell& cell : cells) {
    EXPECT_FALSE(before.contains(cell.folder)) << cell.folder;
    EXPECT_THAT(cell.folder.string(), HasSubstr("-40-epochs-"));
  }
  EXPECT_EQ(cells[0].seed, 0);  // still the table's
  options.quick = true;
  for (const ReproductionCell& cell : plan_cells(table, options))
    EXPECT_THAT(cell.folder.string(), HasSubstr("-40-epochs-"));
  options.set = {"no-assignment"};
  EXPECT_NE(error_text([&] { plan_cells(table, options); }), "");
}

TEST_F(ReproductionTest, ColumnsWithoutAMethodTakeTheRecipes) {
  table.clients_from = "";
  table.columns[0].method = table.columns[1].method = "";
  table.rows[0].set = {"method.name=fedtmos"};
  table.rows[1].set = {"method.name=fedtm-bank"};
  const std::vector<ReproductionCell> cells = plan_cells(table, options);
  ASSERT_EQ(cells.size(), 4u);  // two rows of two seeds
  EXPECT_EQ(cells[0].method, "fedtmos");
  EXPECT_EQ(cells[2].method, "fedtm-bank");
}

TEST_F(ReproductionTest, FaultsNameTheRow) {
  table.rows[1].recipe = "none.toml";
  EXPECT_THAT(error_text([&] { plan_cells(table, options); }),
              StartsWith("p-t.toml: row 'mnist/Dir(0.3)': "));
  table.rows[1].recipe = "mnist.toml";
  table.rows[1].set = {"data.partition.alpha=high"};
  EXPECT_THAT(
      error_text([&] { plan_cells(table, options); }),
      HasSubstr(
          "row 'mnist/Dir(0.3)': --set data.partition.alpha: found the string 'high', expected a number"));
}

// Images and labels of the classes 0 and 1, as MNIST has them.
void write_images(const fs::path& folder, const std::string& part) {
  constexpr uint8_t kSide = 16, kCount = 20;
  Bytes images = {0, 0, 8, 3, 0, 0, 0, kCount, 0, 0, 0, kSide, 0, 0, 0, kSide};
  Bytes labels = {0, 0, 8, 1, 0, 0, 0, kCount};
  for (uint8_t i = 0; i < kCount; ++i) {
    images.insert(images.end(), size_t{kSide} * kSide, static_cast<uint8_t>(10 * i));
    labels.push_back(i % 2);
  }
  write_file_atomically(folder / (part + "-images-idx3-ubyte"), images);
  write_file_atomically(folder / (part + "-labels-idx1-ubyte"), labels);
}

TEST_F(ReproductionTest, ACellIsReadForTheDeviceThatTrainsIt) {
  create_folders(folder / "mnist");
  write_images(folder / "mnist", "train");
  write_images(folder / "mnist", "t10k");
  write_file_atomically(folder / "mnist.toml", std::string_view(R"(
[data]
name = "mnist"
partition = { kind = "iid", clients = 2 }
[model]
name = "custom"
layers = ["dense classes bias"]
[method]
name = "fedavg"
)"));
  table.clients_from.clear();
  table.columns.resize(1);
  table.columns[0].method = "fedavg";
  for (auto& row : table.rows) row.set.clear();
  const ReproductionCell cell = plan_cells(table, options).front();
  auto trainers = std::make_shared<Trainers>();
  trainers->cohort = 4;
  trainers->device = "a device";
  ExperimentOptions experiment;
  experiment.data_dir = folder.path();
  EXPECT_EQ(load_cell(table, options, cell, experiment).device, "");
  experiment.trainers = trainers;
  EXPECT_EQ(load_cell(table, options, cell, experiment).device, "a device");
}

TEST_F(ReproductionTest, SummaryOfAFinishedCell) {
  ReproductionCell cell;
  cell.folder = folder / "cell";
  EXPECT_FALSE(finished_summary(cell));
  create_folders(cell.folder);
  RunSummary summary;
  summary.accuracy = 0.5;
  write_summary(cell.folder, summary);
  EXPECT_EQ(finished_summary(cell), summary);
  write_file_atomically(cell.folder / "summary.json", std::string_view("half of it"));
  EXPECT_THAT(error_text([&] { finished_summary(cell); }),
              HasSubstr("summary.json: found text that is not JSON"));
}

}  // namespace
}  // namespace bitfed
