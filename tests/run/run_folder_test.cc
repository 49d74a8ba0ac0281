#include "bitfed/run/run_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bitfed/base/byte_io.h"
#include "bitfed/base/error.h"
#include "bitfed/report/pages/comparison.h"

namespace bitfed {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

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

TEST_F(RunFolderTest, ReadsTheSummary) {
  write("summary.json", R"({"name": "r", "accuracy": 0.75, "clients": 2, "validation_accuracy": null,
    "class_names": ["a", "b"], "confusion_matrix": [[3, 1], [0, 4]], "client_class_counts": [[1, 2]],
    "notes": ["one"], "something_new": {}})");
  const RunFolder run = read_run_folder(folder_);
  EXPECT_EQ(run.summary.name, "r");
  EXPECT_EQ(run.summary.accuracy, 0.75);
  EXPECT_EQ(run.summary.clients, 2u);
  EXPECT_EQ(run.summary.validation_accuracy, std::nullopt);
  EXPECT_EQ(run.summary.model_bytes, std::nullopt);
  EXPECT_THAT(run.summary.class_names, ElementsAre("a", "b"));
  EXPECT_THAT(run.summary.confusion_matrix, ElementsAre(ElementsAre(3, 1), ElementsAre(0, 4)));
  EXPECT_THAT(run.clients, IsEmpty());
}

TEST_F(RunFolderTest, NamesARunWithoutNameByItsFolder) {
  write("summary.json", "{}");
  EXPECT_EQ(read_run_folder(folder_ / "").summary.name, "run_folder_NamesARunWithoutNameByItsFolder");
}

TEST_F(RunFolderTest, RefusesABadSummary) {
  EXPECT_THAT(error(), AllOf(HasSubstr("summary.json"), HasSubstr("not found")));
  write("summary.json", "{\"name\": ");
  EXPECT_THAT(error(), AllOf(HasSubstr("summary.json"), HasSubstr("not JSON")));
  write("summary.json", "[]");
  EXPECT_THAT(error(), AllOf(HasSubstr("summary.json"), HasSubstr("found array")));
  write("summary.json", R"({"accuracy": "high"})");
  EXPECT_THAT(error(), AllOf(HasSubstr("accuracy: found string, expected a number")));
  write("summary.json", R"({"clients": -3})");
  EXPECT_THAT(error(), HasSubstr("clients: found -3, expected a count"));
  write("summary.json", R"({"client_class_counts": [[4294967296]]})");
  EXPECT_THAT(error(), HasSubstr("client_class_counts: found 4294967296, expected a count"));
  write("summary.json", R"({"client_class_counts": [[1, 2], [3]]})");
  EXPECT_THAT(error(), HasSubstr("client_class_counts: found rows of 2 and of 1"));
  write("summary.json", R"({"confusion_matrix": [[1, 2]]})");
  EXPECT_THAT(error(), HasSubstr("confusion_matrix: found 1 rows of 2"));
}

TEST_F(RunFolderTest, ReadsWhatClientsKeepAndWhatTheRadioTakes) {
  write("summary.json", R"({"local_accuracy_mean": 0.5,
    "client_results": [{"client": 0, "name": "7", "samples": 9, "test_samples": 4, "global_accuracy": 0.25,
                        "local_accuracy": 0.5},
                       {"client": 1, "name": null, "samples": 1, "test_samples": 0, "global_accuracy": null,
                        "local_accuracy": null}],
    "airtime": [{"bits_per_second": 300, "upload_seconds": 413.5, "download_seconds": 7}]})");
  const RunSummary summary = read_run_folder(folder_).summary;
  EXPECT_EQ(summary.local_accuracy_mean, 0.5);
  ASSERT_EQ(summary.client_results.size(), 2u);
  EXPECT_EQ(summary.client_results[0].name, "7");
  EXPECT_EQ(summary.client_results[0].test_samples, 4u);
  EXPECT_EQ(summary.client_results[0].local_accuracy, 0.5);
  EXPECT_EQ(summary.client_results[1].client, 1u);
  EXPECT_EQ(summary.client_results[1].name, "");
  EXPECT_EQ(summary.client_results[1].global_accuracy, std::nullopt);
  ASSERT_EQ(summary.airtime.size(), 1u);
  EXPECT_EQ(summary.airtime[0].bits_per_second, 300u);
  EXPECT_EQ(summary.airtime[0].upload_seconds, 413.5);
}

TEST_F(RunFolderTest, RefusesBadClientResultsAndAirtime) {
  write("summary.json", R"({"client_results": {}})");
  EXPECT_THAT(error(), HasSubstr("client_results: found object, expected an array"));
  write("summary.json", R"({"client_results": [4]})");
  EXPECT_THAT(error(), HasSubstr("client_results: found 4, expected an array of objects"));
  write("summary.json",
        R"({"client_results": [{"client": 0, "samples": 1, "test_samples": 0}, {"samples": 1}]})");
  EXPECT_THAT(error(), HasSubstr("client_results[1]: client: found nothing, expected a number"));
  write("summary.json", R"({"client_results": [{"client": -1}]})");
  EXPECT_THAT(error(), HasSubstr("client_results[0]: client: found -1, expected a count"));
  write("summary.json", R"({"client_results": [{"client": 0, "name": 7}]})");
  EXPECT_THAT(error(), HasSubstr("client_results[0]: name: found 7, expected a string"));
  write("summary.json",
        R"({"client_results": [{"client": 0, "samples": 1, "test_samples": 1, "local_accuracy": "high"}]})");
  EXPECT_THAT(error(), HasSubstr("client_results[0]: local_accuracy: found string, expected a number"));
  write("summary.json", R"({"airtime": [{"bits_per_second": 0.5}]})");
  EXPECT_THAT(error(), HasSubstr("airtime[0]: bits_per_second: found 0.5, expected a count"));
  write("summary.json", R"({"airtime": [{"bits_per_second": 300, "upload_seconds": null}]})");
  EXPECT_THAT(error(), HasSubstr("airtime[0]: upload_seconds: found nothing, expected a number"));
}

TEST_F(RunFolderTest, ReadsEventsAndToleratesACutEnd) {
  write("summary.json", "{}");
  write("events.jsonl",
        R"({"event": "run-started"}
{"event": "client-finished", "round": 1, "client": 4, "samples": 10, "upload_bytes": 99, "seconds": 0.5, "reused": true}
{"event": "round-finished", "round": 1, "accuracy": null, "upload_bytes": 99}
{"event": "client-finished", "round": 2, "client": "ward-b", "samples": 10}
{"event": "round-finished", "round": 2, "accuracy": 0.5}
{"event": "round-finished", "round": 2, "accuracy": 0.75, "local_accuracy_mean": 0.875}
{"event": "round-fin)");
  const RunFolder run = read_run_folder(folder_);
  ASSERT_EQ(run.clients.size(), 2u);
  EXPECT_EQ(run.clients[0].client, "4");
  EXPECT_EQ(run.clients[0].upload_bytes, 99u);
  EXPECT_TRUE(run.clients[0].reused);
  EXPECT_EQ(run.clients[1].client, "ward-b");
  ASSERT_EQ(run.rounds.size(), 2u);
  EXPECT_EQ(run.rounds[0].accuracy, std::nullopt);
  EXPECT_EQ(run.rounds[0].local_accuracy_mean, std::nullopt);
  EXPECT_EQ(run.rounds[1].accuracy, 0.75);  // the later record of a repeated round
  EXPECT_EQ(run.rounds[1].local_accuracy_mean, 0.875);
}

TEST_F(RunFolderTest, NamesTheLineOfABadEvent) {
  write("summary.json", "{}");
  write("events.jsonl", "{\"event\": \"x\"}\nnonsense\n{}\n");
  EXPECT_THAT(error(), AllOf(HasSubstr("events.jsonl"), HasSubstr("line 2")));
  write("events.jsonl", "{\"event\": \"round-finished\", \"round\": \"one\"}\n");
  EXPECT_THAT(error(), AllOf(HasSubstr("events.jsonl"), HasSubstr("line 1")));
  write("events.jsonl", "{\"event\": \"round-finished\", \"local_accuracy_mean\": \"high\"}\n");
  EXPECT_THAT(error(), AllOf(HasSubstr("events.jsonl"), HasSubstr("line 1")));
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
