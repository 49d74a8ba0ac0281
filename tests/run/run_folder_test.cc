#include "bitfed/run/run_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bitfed/base/byte_io.h"
#include "bitfed/base/error.h"
#include "bitfed/report/pages/comparison.h"
#include "bitfed/run/run_folder_writer.h"
#include "tests/run/some_summary.h"

namespace bitfed {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

ClientFinished client(uint32_t round, uint32_t number, Origin origin) {
  return {
      .round = round, .client = number, .samples = 10, .upload_bytes = 99, .seconds = 0.5, .origin = origin};
}

RoundFinished round(uint32_t number, double accuracy) {
  return {.round = number, .uploads = 2, .scores = Scores{.accuracy = accuracy}, .evaluation_seconds = 0.25};
}

class RunFolderTest : public testing::Test {
 protected:
  RunFolderTest() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(testing::TempDir()) / fmt::format("run_folder_{}", test->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~RunFolderTest() override { std::filesystem::remove_all(folder_); }

  void write(const char* name, std::string_view text) { write_file_atomically(folder_ / name, text); }
  void log(const std::vector<Event>& events) {
    RunFolderWriter writer(folder_, "", RunFolderWriter::Existing::kResume);
    for (const Event& event : events) writer.log(event);
  }

  std::string error() {
    try {
      read_run_folder(folder_);
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), Error::Kind::kInput);
      return e.what();
    }
    return "";
  }

  std::filesystem::path folder_;
};

TEST_F(RunFolderTest, ReadsWhatARunWrote) {
  {
    RunFolderWriter writer(folder_, "seed = 1\n", RunFolderWriter::Existing::kRefuse);
    writer.log(RunStarted{});
    writer.log(RoundStarted{.round = 1, .clients = {0, 4}});
    writer.log(client(1, 4, Origin::kTrained));
    writer.log(client(1, 0, Origin::kReused));
    writer.log(round(1, 0.5));
    writer.log(round(2, 0.75));
  }
  write_summary(folder_, some_summary());
  const RunFolder run = read_run_folder(folder_);
  EXPECT_EQ(run.summary, some_summary());
  EXPECT_EQ(run.summary_text, summary_text(some_summary()));
  EXPECT_EQ(run.recipe, "seed = 1\n");
  EXPECT_THAT(run.clients, ElementsAre(client(1, 0, Origin::kReused), client(1, 4, Origin::kTrained)));
  EXPECT_THAT(run.rounds, ElementsAre(round(1, 0.5), round(2, 0.75)));
}

TEST_F(RunFolderTest, NamesARunWithoutNameByItsFolder) {
  write_summary(folder_, {});
  EXPECT_EQ(read_run_folder(folder_ / "").summary.name, "run_folder_NamesARunWithoutNameByItsFolder");
}

TEST_F(RunFolderTest, NeedsASummaryAndNothingElse) {
  EXPECT_THAT(error(), AllOf(HasSubstr("summary.json"), HasSubstr("not found")));
  write_summary(folder_, {});
  const RunFolder run = read_run_folder(folder_);
  EXPECT_THAT(run.clients, IsEmpty());
  EXPECT_THAT(run.rounds, IsEmpty());
  EXPECT_EQ(run.recipe, "");
}

// A resumed run logs again what it finds or repeats.
TEST_F(RunFolderTest, OfARepeatedRoundTheLaterRecordsCount) {
  write_summary(folder_, {});
  log({client(1, 0, Origin::kReused), client(1, 1, Origin::kTrained), round(1, 0.5)});
  ClientFinished repeated = client(1, 1, Origin::kTrained);
  repeated.seconds = 9;
  log({client(1, 0, Origin::kCheckpoint), repeated, round(1, 0.75)});
  const RunFolder run = read_run_folder(folder_);
  // An upload that was found in the checkpoint comes from where it first came from.
  EXPECT_THAT(run.clients, ElementsAre(client(1, 0, Origin::kReused), repeated));
  EXPECT_THAT(run.rounds, ElementsAre(round(1, 0.75)));
}

TEST_F(RunFolderTest, ToleratesACutEndAndOtherVersions) {
  write_summary(folder_, {});
  const std::string whole = event_line(round(1, 0.5), "now");
  write("events.jsonl", "{\"event\": \"something-new\"}\n\n" + whole + "\n" + whole.substr(0, 20));
  EXPECT_THAT(read_run_folder(folder_).rounds, ElementsAre(round(1, 0.5)));
}

TEST_F(RunFolderTest, NamesTheLineOfABadEvent) {
  write_summary(folder_, {});
  write("events.jsonl", "{\"event\": \"x\"}\nnonsense\n{}\n");
  EXPECT_THAT(error(), AllOf(HasSubstr("events.jsonl"), HasSubstr("line 2")));
  write("events.jsonl", "{\"event\": \"round-finished\", \"round\": \"one\"}\n");
  EXPECT_THAT(error(), AllOf(HasSubstr("events.jsonl"), HasSubstr("line 1: round: found string")));
}

RunFolder named(const std::string& name, std::optional<double> accuracy) {
  RunFolder run;
  run.folder = "runs/" + name;
  run.summary.name = name;
  run.summary.accuracy = accuracy;
  return run;
}

TEST(Comparison, FindsTheBest) {
  const ComparedQuantity& accuracy = compared_quantities()[0];
  EXPECT_THAT(best_runs({named("a", 0.5), named("b", 0.75), named("c", {})}, accuracy), ElementsAre(1));
  EXPECT_THAT(best_runs({named("a", 0.5), named("b", 0.5)}, accuracy), ElementsAre(0, 1));
  EXPECT_THAT(best_runs({named("a", {})}, accuracy), IsEmpty());
}

TEST(Comparison, AlignsColumns) {
  const std::string text = comparison_text({named("ä", 0.5), named("longer", {})});
  EXPECT_THAT(text, HasSubstr("ä        50.00 %"));
  EXPECT_THAT(text, HasSubstr("longer         –"));
}

TEST(Comparison, ShowsOwnModelsWhereAnyRunHasSome) {
  std::vector<RunFolder> runs = {named("a", 0.5), named("b", 0.5)};
  EXPECT_THAT(comparison_text(runs), Not(HasSubstr("own models")));
  runs[1].summary.local_accuracy_mean = 0.625;
  EXPECT_THAT(comparison_text(runs), AllOf(HasSubstr("own models"), HasSubstr("62.50 %")));
}

TEST(Comparison, TellsNamesakesApart) {
  std::vector<RunFolder> runs = {named("a", {}), named("a", {}), named("b", {})};
  runs[1].folder = "runs/other";
  EXPECT_THAT(run_labels(runs), ElementsAre("a (runs/a)", "a (runs/other)", "b"));
  runs[0].summary.method = "fedtmos";
  runs[1].summary.method = "fedtm";
  EXPECT_THAT(run_labels(runs), ElementsAre("a, fedtmos", "a, fedtm", "b"));
}

}  // namespace
}  // namespace bitfed
