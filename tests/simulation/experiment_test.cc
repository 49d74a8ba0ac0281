#include "bitfed/simulation/experiment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "bitfed/base/byte_io.h"
#include "bitfed/base/hash/random.h"
#include "bitfed/bits/kernels.h"
#include "bitfed/data/catalog/catalog.h"
#include "bitfed/model/state.h"
#include "bitfed/report/pages/page.h"
#include "bitfed/run/run_folder.h"
#include "bitfed/zoo/zoo.h"
#include "tests/base/error_text.h"
#include "tests/base/temporary_folder.h"

namespace bitfed {
namespace {

namespace fs = std::filesystem;

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Images of 8 x 8 in which the class is where a bright 3 x 3 square stands, with some noise.
void write_idx(const fs::path& folder, const std::string& part, uint32_t count) {
  const auto header = [](uint8_t dimensions, const std::vector<uint32_t>& sizes) {
    Bytes bytes = {0, 0, 8, dimensions};
    for (const uint32_t size : sizes) {
      for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<uint8_t>(size >> shift));
    }
    return bytes;
  };
  Bytes images = header(3, {count, 8, 8});
  Bytes labels = header(1, {count});
  RandomStream random({5, part});
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t label = random.below(4);
    labels.push_back(static_cast<uint8_t>(label));
    for (uint32_t y = 0; y < 8; ++y) {
      for (uint32_t x = 0; x < 8; ++x) {
        const bool inside = y / 4 == label / 2 && x / 4 == label % 2 && y % 4 != 0 && x % 4 != 0;
        images.push_back(inside != (random.below(20) == 0) ? 200 : 10);
      }
    }
  }
  write_file_atomically(folder / (part + "-images-idx3-ubyte"), images);
  write_file_atomically(folder / (part + "-labels-idx1-ubyte"), labels);
}

constexpr const char* kRecipe = R"(
name = "tiny"
seed = 3
[data]
name = "mnist"
partition = { kind = "iid", clients = 4 }
evaluate = "second-half"
[model]
name = "ctm"
clauses = 10
threshold = 30
patch = [4, 4]
[method]
name = "fedtm-bank"
[client]
epochs = 2
)";

class ExperimentTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    data_ = new TemporaryFolder();
    create_folders(*data_ / "mnist");
    write_idx(*data_ / "mnist", "train", 240);
    write_idx(*data_ / "mnist", "t10k", 160);
  }
  static void TearDownTestSuite() {
    delete data_;
    data_ = nullptr;
  }
  void TearDown() override { force_kernels(best_); }

  ExperimentResult run(const std::string& folder,
                       const std::vector<std::pair<std::string, std::string>>& sets = {},
                       const ExperimentOptions& like = {}) {
    Config recipe = Config::parse(kRecipe, "tiny.toml");
    for (const auto& [key, value] : sets) recipe.set(key, value);
    ExperimentOptions options = like;
    options.out = out_ / folder;
    options.data_dir = data_->path();
    options.version = "1.2.3";
    if (options.threads == 0) options.threads = 1;
    return run_experiment(recipe, options, [this](const Event& event) { received_.insert(kind_of(event)); });
  }

  // The kinds of the events in the log.
  std::vector<std::string> logged(const std::string& folder) {
    std::vector<std::string> kinds;
    std::ifstream log(out_ / folder / "events.jsonl");
    for (std::string line; std::getline(log, line);)
      kinds.emplace_back(kind_of(parse_event(line, line).value()));
    return kinds;
  }

  inline static TemporaryFolder* data_ = nullptr;
  const std::string best_ = kernels().name;
  TemporaryFolder out_;
  std::set<std::string> received_;
};

TEST_F(ExperimentTest, WritesItsFolder) {
  const ExperimentResult result = run("run");
  EXPECT_EQ(result.folder, out_ / "run");
  for (const char* name :
       {"recipe.toml", "events.jsonl", "model.safetensors", "summary.json", "checkpoint"}) {
    EXPECT_TRUE(fs::exists(out_ / "run" / name)) << name;
  }
  EXPECT_EQ(read_text_file(out_ / "run/summary.json"), summary_text(result.summary));
  const State state = read_state(out_ / "run/model.safetensors");
  EXPECT_EQ(state.sha256(), result.summary.model_sha256);
  EXPECT_EQ(load_model(state, "model")->class_count(), 10u);
  // Progress is shown but not logged.
  EXPECT_TRUE(received_.contains("client-progress"));
  EXPECT_TRUE(received_.contains("run-finished"));
  EXPECT_THAT(logged("run"),
              ElementsAre("run-started", "round-started", "client-finished", "client-finished",
                          "client-finished", "client-finished", "round-finished", "run-finished"));
  // What was resolved is a recipe that gives the same run.
  const Config again = Config::load(out_ / "run/recipe.toml");
  ExperimentOptions options;
  options.out = out_ / "again";
  options.data_dir = data_->path();
  options.threads = 1;
  EXPECT_EQ(run_experiment(again, options, [](const Event&) {}).summary.model_sha256,
            result.summary.model_sha256);
}

// What a run wrote is what a report reads.
TEST_F(ExperimentTest, ItsFolderIsRead) {
  const RunSummary summary = run("run").summary;
  const RunFolder folder = read_run_with_model(out_ / "run");
  EXPECT_EQ(folder.summary, summary);
  ASSERT_EQ(folder.clients.size(), 4u);
  uint64_t uploaded = 0;
  for (uint32_t client = 0; client < 4; ++client) {
    EXPECT_EQ(folder.clients[client].client, client);
    EXPECT_EQ(folder.clients[client].samples, 60u);
    EXPECT_EQ(folder.clients[client].origin, Origin::kTrained);
    uploaded += folder.clients[client].upload_bytes;
  }
  EXPECT_EQ(uploaded, summary.total_upload_bytes);
  ASSERT_EQ(folder.rounds.size(), 1u);
  EXPECT_EQ(folder.rounds[0].scores->accuracy, summary.accuracy);
  EXPECT_EQ(folder.rounds[0].upload_bytes, uploaded);
  EXPECT_FALSE(folder.machines.empty());
}

TEST_F(ExperimentTest, SummaryHasAllItsFields) {
  const RunSummary summary = run("run").summary;
  EXPECT_EQ(summary.name, "tiny");
  EXPECT_EQ(summary.method, "fedtm-bank");
  EXPECT_EQ(summary.model, "ctm");
  EXPECT_EQ(summary.dataset, "mnist");
  EXPECT_EQ(summary.partition, "IID, 4 clients");
  EXPECT_EQ(summary.clients, 4u);
  EXPECT_EQ(summary.rounds, 1u);
  EXPECT_EQ(summary.seed, 3u);
  EXPECT_EQ(summary.version, "1.2.3");
  EXPECT_EQ(summary.threads, 1u);
  EXPECT_EQ(summary.isa, best_);
  EXPECT_NE(summary.machine, "");
  EXPECT_EQ(summary.model_sha256.size(), 64u);
  EXPECT_EQ(summary.train_samples, 240u * 2);
  EXPECT_GT(summary.accuracy.value(), 0.5);
  EXPECT_LE(summary.accuracy.value(), 1.0);
  EXPECT_EQ(summary.f1_micro, summary.accuracy);
  EXPECT_EQ(summary.upload_bytes_per_client, *summary.total_upload_bytes / 4);
  // 10 clauses for each of 10 classes: a word for the weight, two for 2 * (8 + 16) literals.
  EXPECT_EQ(summary.upload_bytes_raw, 4u * 10 * 10 * 3);
  uint64_t uploaded = 0;
  for (const auto& entry : fs::directory_iterator(out_ / "run/checkpoint/round-00001")) {
    if (entry.path().extension() == ".safetensors") uploaded += entry.file_size();
  }
  EXPECT_EQ(summary.total_upload_bytes, uploaded);
  uint64_t evaluated = 0;
  for (const auto& row : summary.confusion_matrix)
    evaluated = std::accumulate(row.begin(), row.end(), evaluated);
  EXPECT_EQ(evaluated, 160u - 96);  // half of 160 is two and a half batches of 32, rounded up
  uint64_t dealt = 0;
  for (const auto& row : summary.client_class_counts) dealt = std::accumulate(row.begin(), row.end(), dealt);
  EXPECT_EQ(dealt, 240u);
  // All there, but what only other methods have.
  const auto written = nlohmann::ordered_json::parse(summary_text(summary));
  std::vector<std::string> missing;
  for (const auto& [name, value] : written.items()) {
    if (value.is_null()) missing.push_back(name);
  }
  EXPECT_THAT(missing, ElementsAre("device", "binarized_accuracy", "local_accuracy_mean", "model_bytes_paper",
                                   "flops_paper"));
}

TEST_F(ExperimentTest, TheSameModelWithAnyThreadsAndInstructions) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"fedtm-bank", "1"}, {"fedtm-bank", "2"}, {"fedtmos", "1"}, {"fedtm", "3"}};
  for (const auto& [method, rounds] : cases) {
    const std::vector<std::pair<std::string, std::string>> sets = {{"method.name", method},
                                                                   {"rounds", rounds}};
    std::optional<RunSummary> first;
    for (const Kernels* table : supported_kernels()) {
      force_kernels(table->name);
      for (const unsigned threads : {1u, 2u}) {
        ExperimentOptions options;
        options.threads = threads;
        const std::string name = fmt::format("{}-{}-{}-{}", method, rounds, table->name, threads);
        const RunSummary summary = run(name, sets, options).summary;
        if (!first) first = summary;
        EXPECT_EQ(summary.model_sha256, first->model_sha256) << name;
        EXPECT_EQ(summary.accuracy, first->accuracy) << name;
        EXPECT_EQ(summary.isa, table->name);
        EXPECT_EQ(summary.threads, threads);
      }
    }
  }
}

TEST_F(ExperimentTest, AnotherSeedIsAnotherModel) {
  EXPECT_NE(run("one", {{"seed", "1"}}).summary.model_sha256,
            run("two", {{"seed", "2"}}).summary.model_sha256);
}

TEST_F(ExperimentTest, ReuseEqualsTraining) {
  run("bank");
  ExperimentOptions reusing;
  reusing.reuse = out_ / "bank";
  // Of a second round, which the other run does not have, clients are asked.
  const RunSummary second = run("second", {{"rounds", "2"}}, reusing).summary;
  EXPECT_EQ(second.model_sha256, run("second-trained", {{"rounds", "2"}}).summary.model_sha256);
  for (const char* method : {"fedtmos", "fedtmos-ensemble"}) {
    const RunSummary reused =
        run(method + std::string("-reused"), {{"method.name", method}}, reusing).summary;
    const RunSummary trained = run(method, {{"method.name", method}}).summary;
    EXPECT_EQ(reused.model_sha256, trained.model_sha256);
    EXPECT_EQ(reused.accuracy, trained.accuracy);
    EXPECT_EQ(reused.total_upload_bytes, trained.total_upload_bytes);
    EXPECT_EQ(reused.reused_uploads, 4u);
    EXPECT_EQ(trained.reused_uploads, 0u);
  }
}

// The report marks the uploads of another run, also where the run was interrupted after it had taken them.
TEST_F(ExperimentTest, TheReportMarksReusedUploads) {
  const auto marks = [&](const std::string& folder) {
    const std::string page = report_page({read_run_folder(out_ / folder)});
    size_t count = 0;
    for (size_t at = page.find("↺"); at != std::string::npos; at = page.find("↺", at + 1)) ++count;
    return count;
  };
  run("bank");
  EXPECT_EQ(marks("bank"), 0u);
  ExperimentOptions reusing;
  reusing.reuse = out_ / "bank";
  run("reused", {{"method.name", "fedtmos"}}, reusing);
  EXPECT_EQ(marks("reused"), 4u);
  fs::remove(out_ / "reused/summary.json");
  fs::remove(out_ / "reused/checkpoint/server.safetensors");
  reusing.existing = RunFolderWriter::Existing::kResume;
  run("reused", {{"method.name", "fedtmos"}}, reusing);
  EXPECT_THAT(read_text_file(out_ / "reused/events.jsonl"), HasSubstr("\"origin\":\"checkpoint\""));
  EXPECT_EQ(marks("reused"), 4u);
}

TEST_F(ExperimentTest, ReuseOfOtherSettingsIsRefused) {
  run("bank");
  ExperimentOptions reusing;
  reusing.reuse = out_ / "bank";
  const auto refusal = [&](const std::string& key, const std::string& value) {
    return error_text([&] { run("other-" + key, {{key, value}}, reusing); });
  };
  EXPECT_THAT(refusal("client.epochs", "3"), HasSubstr("'epochs = 2' there, 'epochs = 3' here"));
  EXPECT_THAT(refusal("model.clauses", "12"), HasSubstr("'clauses = 10' there, 'clauses = 12' here"));
  EXPECT_THAT(refusal("seed", "4"), HasSubstr("'seed = 3' there, 'seed = 4' here"));
  EXPECT_THAT(refusal("data.partition.clients", "3"), HasSubstr("other settings"));
  reusing.reuse = out_ / "nowhere";
  EXPECT_THAT(error_text([&] { run("from-nowhere", {}, reusing); }),
              HasSubstr("holds no upload of client 0"));
}

TEST_F(ExperimentTest, ResumingAFinishedRunGivesItsSummary) {
  const RunSummary first = run("run").summary;
  ExperimentOptions options;
  EXPECT_THAT(error_text([&] { run("run"); }), HasSubstr("--resume"));
  options.existing = RunFolderWriter::Existing::kResume;
  EXPECT_EQ(run("run", {}, options).summary, first);
  EXPECT_THAT(error_text([&] {
                run("run", {{"client.epochs", "3"}}, options);
              }),
              HasSubstr("another recipe"));
  options.existing = RunFolderWriter::Existing::kOverwrite;
  EXPECT_NE(run("run", {{"client.epochs", "3"}}, options).summary.model_sha256, first.model_sha256);
}

// Stopped at several moments and resumed: the same model.
TEST_F(ExperimentTest, StoppedAndResumed) {
  for (const std::string method : {"fedtm", "fedtm-bank"}) {
    const std::vector<std::pair<std::string, std::string>> sets = {{"method.name", method}, {"rounds", "2"}};
    int asked = 0;
    ExperimentOptions options;
    options.stop = [&] { return ++asked < 0; };
    const std::string expected = run("undisturbed-" + method, sets, options).summary.model_sha256;
    const int all = asked;
    for (int after = 0; after < all; after += all / 6) {
      const std::string name = fmt::format("stopped-{}-{}", method, after);
      asked = 0;
      options.existing = RunFolderWriter::Existing::kRefuse;
      options.stop = [&] { return ++asked > after; };
      EXPECT_EQ(error_text([&] { run(name, sets, options); }, Error::Kind::kStopped), "stopped") << after;
      options.stop = {};
      options.existing = RunFolderWriter::Existing::kResume;
      EXPECT_EQ(run(name, sets, options).summary.model_sha256, expected) << after;
    }
  }
}

// Two people; the class is the sign of the first column. Person q only begins to run when the test rows do.
std::string table_of_people() {
  std::string text = "who,a,b,activity\n";
  for (int i = 0; i < 60; ++i) {
    text += fmt::format("{},{},{},{}\n", i % 2 == 0 ? "p" : "q", i % 3 == 0 ? 1 + i : -1 - i, i,
                        i >= 50 ? "run" : (i % 3 == 0 ? "walk" : "lie"));
  }
  return text + "p,,1,walk\nq,1,NA,walk\n";
}

TEST_F(ExperimentTest, SaysWhatTheDataLacks) {
  write_file_atomically(*data_ / "people.csv", table_of_people());
  const auto run_table = [&](const std::string& name, const std::string& split) {
    return run(name,
               {{"data", fmt::format("{{file = 'people.csv', label = 'activity', person = 'who', split = "
                                     "'{}', partition = {{kind = 'column'}}}}",
                                     split)},
                {"model", "{name = 'tm', clauses = 10}"}})
        .summary.notes;
  };
  const std::vector<std::string> notes = run_table("time", "time");
  EXPECT_THAT(notes, Contains("2 rows with empty cells were left out"));
  EXPECT_THAT(notes, Contains("class 'run' is only in the test rows: no client can learn it"));
  const std::string log = read_text_file(out_ / "time/events.jsonl");
  EXPECT_THAT(log, HasSubstr("\"dropped_rows\":2"));
  EXPECT_THAT(run_table("drawn", "stratified"), Contains(HasSubstr("may be on both sides")));
}

TEST_F(ExperimentTest, BadRecipesWriteNothing) {
  const auto refusal = [&](const std::string& key, const std::string& value) {
    return error_text([&] { run("bad", {{key, value}}); });
  };
  EXPECT_THAT(refusal("model.clases", "4"), HasSubstr("clauses"));
  EXPECT_THAT(refusal("model.clauses", "3"), HasSubstr("even"));
  EXPECT_THAT(refusal("rounds", "3"), HasSubstr("rounds"));  // a one-shot method has at most two
  EXPECT_THAT(refusal("federation.clients_per_round", "5"), HasSubstr("clients_per_round"));
  EXPECT_THAT(refusal("federation.dropout", "2.0"), HasSubstr("dropout"));
  EXPECT_THAT(refusal("data.partition.clients", "241"), HasSubstr("clients"));
  EXPECT_THAT(refusal("name", "../up"), HasSubstr("'../up'"));
  EXPECT_THAT(refusal("method.name", "fedtmoss"), HasSubstr("fedtmos"));
  EXPECT_FALSE(fs::exists(out_ / "bad"));
}

TEST_F(ExperimentTest, FractionOfTheClients) {
  EXPECT_EQ(run("half", {{"federation.fraction", "0.5"}}).summary.train_samples, 120u * 2);
  EXPECT_THAT(error_text([&] {
                run("both", {{"federation.fraction", "0.5"}, {"federation.clients_per_round", "2"}});
              }),
              HasSubstr("one of the two"));
}

// The same samples, once from files and once as arrays that the caller made.
TEST_F(ExperimentTest, OnArraysInMemory) {
  const RunSummary from_files = run("files").summary;
  const DataSplit loaded = load_dataset("mnist", data_->path().string());
  DataSplit arrays;
  for (const auto& [from, to] :
       {std::pair(&loaded.train, &arrays.train), std::pair(&loaded.test, &arrays.test)}) {
    to->height = to->width = 8;
    to->channels = 1;
    to->pixels = from->pixels;
    to->labels = from->labels;
    for (int digit = 0; digit < 10; ++digit) to->class_names.push_back(std::to_string(digit));
  }
  Config recipe = Config::parse(kRecipe, "tiny.toml");
  // A recipe that names its data cannot be run on other data.
  EXPECT_THAT(error_text([&] { read_experiment(recipe, arrays, "tiny", ClientsAre::kSimulated); }),
              HasSubstr("tiny.toml: line 5: data.name: unknown key"));
  recipe.set("data", "{partition = {kind = 'iid', clients = 4}, evaluate = 'second-half'}");
  ExperimentOptions options;
  options.out = out_ / "arrays";
  options.threads = 2;
  const RunSummary from_arrays =
      run_experiment(read_experiment(recipe, arrays, "tiny", ClientsAre::kSimulated), options,
                     [](const Event&) {})
          .summary;
  EXPECT_EQ(from_arrays.model_sha256, from_files.model_sha256);
  EXPECT_EQ(from_arrays.accuracy, from_files.accuracy);
  EXPECT_EQ(from_arrays.confusion_matrix, from_files.confusion_matrix);
  arrays.train.labels.pop_back();
  EXPECT_THAT(error_text([&] { read_experiment(recipe, arrays, "tiny", ClientsAre::kSimulated); }),
              HasSubstr("pixels: found 15360, expected 15296 for 239 samples"));
}

}  // namespace
}  // namespace bitfed
