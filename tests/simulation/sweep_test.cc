#include "bitfed/simulation/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "bitfed/base/byte_io.h"
#include "tests/base/error_text.h"
#include "tests/base/temporary_folder.h"

namespace bitfed {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Sweep, AxesOfAGrid) {
  EXPECT_THAT(parse_grid_axis("model.sensitivity=3,5,10").values, ElementsAre("3", "5", "10"));
  EXPECT_THAT(parse_grid_axis("model.patch=[3,3],[5,5]").values, ElementsAre("[3,3]", "[5,5]"));
  EXPECT_THAT(parse_grid_axis("data.partition={kind=\"iid\",clients=2}").values,
              ElementsAre("{kind=\"iid\",clients=2}"));
  for (const char* text : {"model.clauses", "=3", "a=", "a=1,,2", "a=1,1"})
    EXPECT_THAT(error_text([&] { parse_grid_axis(text); }), HasSubstr("--grid")) << text;
}

TEST(Sweep, EveryCombinationWithEverySeed) {
  const auto runs = plan_sweep({{"a.b", {"1", "2"}}, {"c", {"[3,3]", "x"}}}, {0, 7}, "out");
  ASSERT_EQ(runs.size(), 8u);
  EXPECT_EQ(runs[0].folder, "out/a.b-1+c-3_3/seed-0");
  EXPECT_EQ(runs[1].folder, "out/a.b-1+c-3_3/seed-7");
  EXPECT_THAT(runs[7].values, ElementsAre("2", "x"));
  EXPECT_EQ(runs[7].cell, 3u);
  EXPECT_EQ(runs[5].number, 5u);
  // "a b" and "ab" differ in what a folder's name does not show.
  const auto alike = plan_sweep({{"c", {"a b", "ab"}}}, {0}, "out");
  EXPECT_NE(alike[0].folder, alike[1].folder);
}

TEST(Sweep, AKeyOrASeedThatComesTwice) {
  const auto refused = [](const std::vector<GridAxis>& axes, const std::vector<uint64_t>& seeds) {
    return error_text([&] { plan_sweep(axes, seeds, "out"); });
  };
  EXPECT_THAT(refused({{"a", {"1"}}, {"a", {"2"}}}, {0}), HasSubstr("--grid a: found it twice"));
  EXPECT_THAT(refused({{"seed", {"1", "2"}}}, {0}), HasSubstr("expected them in --seeds 1,2"));
  EXPECT_THAT(refused({{"a", {"1"}}}, {3, 0, 3}), HasSubstr("--seeds: found 3 twice"));
}

TEST(Sweep, GroupsOfRunsThatMayShareTheirClients) {
  const std::vector<GridAxis> axes = {{"method.name", {"x", "y"}}, {"model.clauses", {"1", "2"}}};
  const auto groups = group_sweep(axes, plan_sweep(axes, {0, 7}, "out"));
  ASSERT_EQ(groups.size(), 4u);
  for (const auto& group : groups) {
    ASSERT_EQ(group.size(), 2u);
    EXPECT_EQ(group[0].seed, group[1].seed);
    EXPECT_EQ(group[0].values[1], group[1].values[1]);
    EXPECT_NE(group[0].values[0], group[1].values[0]);
  }
}

constexpr const char* kRecipe = R"(
name = "r"
[data]
file = "t.csv"
label = "kind"
partition = { kind = "iid", clients = 2 }
[model]
name = "tm"
clauses = 4
[method]
name = "fedtmos"
[client]
epochs = 1
)";

class SweepTest : public testing::Test {
 protected:
  SweepTest() {
    std::string table = "x,y,kind\n";
    for (int i = 0; i < 40; ++i)
      table += fmt::format("{},{},{}\n", i % 7, i % 3 + 5 * (i % 2), i % 2 == 0 ? "a" : "b");
    write_file_atomically(folder_ / "t.csv", std::string_view(table));
    write_file_atomically(folder_ / "r.toml", std::string_view(kRecipe));
    options_.recipe = (folder_ / "r.toml").string();
    options_.experiment.data_dir = folder_.path().string();
    options_.experiment.threads = 1;
    options_.axes = {{"method.name", {"fedtmos", "fedtm-bank"}}};
  }
  // The summaries by folder.
  std::map<std::string, RunSummary> run(unsigned jobs, const std::string& out) {
    options_.jobs = jobs;
    std::map<std::string, RunSummary> found;
    const auto runs = plan_sweep(options_.axes, {0, 1}, folder_ / out);
    run_sweep(options_, runs, [&](const SweepRun& run, const ExperimentResult& result) {
      found[run.folder.lexically_relative(folder_ / out).string()] = result.summary;
    });
    return found;
  }

  TemporaryFolder folder_;
  SweepOptions options_;
};

// Both methods fuse the same clients: those of a seed are trained once. Jobs and resuming change nothing.
TEST_F(SweepTest, ClientsAreTrainedOnceAndResultsDoNotDependOnJobs) {
  const auto one = run(1, "one");
  ASSERT_EQ(one.size(), 4u);
  EXPECT_EQ(one.at("method.name-fedtmos/seed-0").reused_uploads, 0u);
  EXPECT_GT(*one.at("method.name-fedtm-bank/seed-0").reused_uploads, 0u);
  const auto two = run(2, "two");
  const auto again = run(1, "one");
  for (const auto& [name, summary] : one) {
    EXPECT_EQ(two.at(name).model_sha256, summary.model_sha256) << name;
    EXPECT_EQ(again.at(name), summary) << name;
  }
}

TEST_F(SweepTest, AnErrorEndsIt) {
  options_.axes = {{"model.clauses", {"4", "7"}}};
  EXPECT_THAT(error_text([&] { run(1, "out"); }), HasSubstr("model.clauses"));
}

}  // namespace
}  // namespace bitfed
