#include "bitfed/report/pages/comparison.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "bitfed/report/markup.h"
#include "bitfed/report/pages/page.h"

namespace bitfed {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

RunFolder run_of(const std::string& folder, uint64_t seed, double accuracy, double clauses = 10) {
  RunFolder run;
  run.folder = folder;
  run.summary.name = "r";
  run.summary.method = "fedtm";
  run.summary.seed = seed;
  run.summary.accuracy = accuracy;
  run.summary.wall_seconds = 5;
  run.recipe = fmt::format("name = \"r\"\nseed = {}\n\n[model]\nclauses = {}\nseed = 1\n", seed, clauses);
  return run;
}

// 0.5, 0.6 and 0.7: mean 0.6, sample deviation sqrt((0.01 + 0.01) / 2).
TEST(Comparison, SeedsOfOneRecipeAreGrouped) {
  const std::vector<RunFolder> runs = {run_of("a", 0, 0.5), run_of("b", 1, 0.6), run_of("c", 2, 0.7),
                                       run_of("d", 0, 0.9, 20), run_of("e", 0, 0.5)};
  const std::vector<SeedGroup> groups = seed_groups(runs);
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_THAT(groups[0].runs, ElementsAre(0, 1, 2));  // e repeats the seed of a
  EXPECT_EQ(spread_text(runs, groups[0], compared_quantities()[0]), "60.00 % ± 10.00 %");
  EXPECT_THAT(comparison_text(runs), HasSubstr("mean ± sample deviation"));
  EXPECT_THAT(report_page(runs), HasSubstr("sample standard deviation"));
  EXPECT_THAT(comparison_text({runs[0], runs[3]}), Not(HasSubstr("±")));
}

// The runs of a sweep lie in a folder for each combination; others lie side by side.
TEST(Comparison, GroupsOfOneNameAreToldApartByFolder) {
  const auto labels = [](const std::vector<RunFolder>& runs) {
    std::vector<std::string> found;
    for (const SeedGroup& group : seed_groups(runs)) found.push_back(group.label);
    return found;
  };
  EXPECT_THAT(labels({run_of("s/x/seed-0", 0, 0.5), run_of("s/x/seed-1", 1, 0.5),
                      run_of("s/y/seed-0", 0, 0.5, 20), run_of("s/y/seed-1", 1, 0.5, 20)}),
              ElementsAre("r, fedtm (s/x)", "r, fedtm (s/y)"));
  EXPECT_THAT(labels({run_of("a0", 0, 0.5), run_of("a1", 1, 0.5), run_of("b0", 0, 0.5, 20),
                      run_of("b1", 1, 0.5, 20)}),
              ElementsAre("r, fedtm (a0)", "r, fedtm (b0)"));
}

TEST(Comparison, SpreadByHand) {
  EXPECT_FALSE(spread_of({1}));
  const Spread spread = *spread_of({1, 2, 6});
  EXPECT_DOUBLE_EQ(spread.mean, 3);
  EXPECT_DOUBLE_EQ(spread.deviation, std::sqrt((4 + 1 + 9) / 2.0));
}

// A run that took another's uploads trained nothing: its time is no record.
TEST(Comparison, ShortestTimeIsThatOfARunThatTrained) {
  std::vector<RunFolder> runs = {run_of("a", 0, 0.5), run_of("b", 0, 0.6)};
  runs[1].summary.wall_seconds = 1;
  runs[1].summary.reused_uploads = 4;
  for (const ComparedQuantity& quantity : compared_quantities()) {
    if (quantity.name == "wall time") {
      EXPECT_THAT(best_runs(runs, quantity), ElementsAre(0));
    }
    if (quantity.name == "accuracy") {
      EXPECT_THAT(best_runs(runs, quantity), ElementsAre(1));
    }
  }
}

// A terminal of 100 characters holds the table of two runs with everyday names.
TEST(Comparison, TheTerminalHasFewColumnsAndThePageAll) {
  std::vector<RunFolder> runs = {run_of("a", 0, 0.5), run_of("b", 1, 0.6)};
  for (RunFolder& run : runs) {
    run.summary.name = "quickstart, fedtm-bank";
    run.summary.f1_macro = run.summary.balanced_accuracy = 0.5;
    run.summary.evaluation_seconds = run.summary.wall_seconds = run.summary.train_seconds = 100;
    run.summary.total_upload_bytes = run.summary.upload_bytes_per_client = run.summary.model_bytes = 10000;
  }
  const std::string text = comparison_text(runs);
  EXPECT_LE(text.find('\n'), 100);
  EXPECT_THAT(text, Not(HasSubstr("macro F1")));
  const auto on_page = page_quantities(runs);
  EXPECT_TRUE(
      std::any_of(on_page.begin(), on_page.end(), [](const auto& q) { return q.name == "macro F1"; }));
}

TEST(Comparison, LabelsStayDistinct) {
  std::vector<RunFolder> runs = {run_of("a", 0, 0), run_of("b", 1, 0), run_of("c", 1, 0), run_of("c", 1, 0)};
  EXPECT_THAT(run_labels(runs), ElementsAre("r, fedtm, seed 0", "r (b)", "r (c)", "r (c) #2"));
}

TEST(Markup, ShortenedLabelsStayDistinct) {
  EXPECT_THAT(shorten_apart({"a long name 1", "other"}, 8), ElementsAre("a long …", "other"));
  EXPECT_THAT(shorten_apart({"a long name 1", "a long name 2"}, 8), ElementsAre("a l…me 1", "a l…me 2"));
  EXPECT_THAT(shorten_apart({"xxxxx1xxxxxxxxx", "xxxxx2xxxxxxxxx"}, 6), ElementsAre("xxx… 1", "xxx… 2"));
  EXPECT_THAT(shorten_apart({"same and long", "same and long"}, 6), ElementsAre("same …", "same …"));
}

// RFC 4648, section 10.
TEST(Markup, Base64) {
  EXPECT_EQ(base64({}), "");
  EXPECT_EQ(base64({'f'}), "Zg==");
  EXPECT_EQ(base64({'f', 'o'}), "Zm8=");
  EXPECT_EQ(base64({'f', 'o', 'o', 'b', 'a', 'r'}), "Zm9vYmFy");
}

}  // namespace
}  // namespace bitfed
