#include "bitfed/run/run_folder_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "bitfed/base/byte_io.h"
#include "tests/base/error_text.h"
#include "tests/base/temporary_folder.h"

namespace bitfed {
namespace {

namespace fs = std::filesystem;

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using Existing = RunFolderWriter::Existing;

constexpr const char* kRecipe = "seed = 1\nrounds = 2\n";

class RunFolderWriterTest : public testing::Test {
 protected:
  std::string refusal(Existing existing, const std::string& recipe = kRecipe) {
    return error_text([&] { RunFolderWriter(folder_, recipe, existing); });
  }
  void touch(const std::string& name) {
    create_folders((folder_ / name).parent_path());
    write_file_atomically(folder_ / name, std::string_view("old"));
  }

  TemporaryFolder parent_;
  const fs::path folder_ = parent_ / "deep/run";
};

TEST_F(RunFolderWriterTest, ALargeLogIsRotated) {
  create_folders(folder_);
  {
    std::ofstream log(folder_ / "events.jsonl", std::ios::binary);
    log.seekp((256 << 20) - 1);  // sparse
    log << "\n";
  }
  RunFolderWriter writer(folder_, kRecipe, Existing::kResume);
  writer.log(Warning{.text = "one"});
  EXPECT_EQ(fs::file_size(folder_ / "events.jsonl"), 0u);
  EXPECT_GT(fs::file_size(folder_ / "events.jsonl.1"), size_t{256} << 20);
  writer.log(Warning{.text = "two"});
  EXPECT_THAT(read_text_file(folder_ / "events.jsonl"), HasSubstr("\"two\""));
}

TEST_F(RunFolderWriterTest, MakesTheFolder) {
  const RunFolderWriter writer(folder_, kRecipe, Existing::kRefuse);
  EXPECT_EQ(read_text_file(folder_ / "recipe.toml"), kRecipe);
  EXPECT_TRUE(fs::is_directory(writer.checkpoint()));
  EXPECT_EQ(writer.checkpoint(), folder_ / "checkpoint");
  EXPECT_FALSE(writer.is_finished());
}

TEST_F(RunFolderWriterTest, LockedWhileInUse) {
  {
    const RunFolderWriter writer(folder_, kRecipe, Existing::kRefuse);
    for (const Existing existing : {Existing::kRefuse, Existing::kResume, Existing::kOverwrite}) {
      EXPECT_THAT(refusal(existing), HasSubstr("another bitfed is at work"));
    }
  }
  EXPECT_EQ(refusal(Existing::kResume), "");
}

// A process that is killed leaves no lock behind.
TEST_F(RunFolderWriterTest, TheLockDiesWithItsProcess) {
  const pid_t child = fork();
  if (child == 0) {
    const RunFolderWriter writer(folder_, kRecipe, Existing::kRefuse);
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(refusal(Existing::kResume), "");
}

TEST_F(RunFolderWriterTest, ARunThatIsThereIsRefused) {
  { const RunFolderWriter writer(folder_, kRecipe, Existing::kRefuse); }
  EXPECT_THAT(refusal(Existing::kRefuse), HasSubstr("--resume"));
  // Refusing must not keep the folder locked.
  EXPECT_EQ(refusal(Existing::kResume), "");
}

TEST_F(RunFolderWriterTest, AnotherRecipeIsRefusedWithTheDifference) {
  { const RunFolderWriter writer(folder_, kRecipe, Existing::kRefuse); }
  EXPECT_THAT(refusal(Existing::kResume, "seed = 1\nrounds = 3\n"),
              HasSubstr("another recipe: 'rounds = 2' there, 'rounds = 3' here"));
  EXPECT_EQ(read_text_file(folder_ / "recipe.toml"), kRecipe);
  EXPECT_EQ(refusal(Existing::kResume), "");
}

TEST_F(RunFolderWriterTest, ResumeKeepsEverything) {
  {
    RunFolderWriter writer(folder_, kRecipe, Existing::kRefuse);
    writer.log(ClientLost{.client = 1});
  }
  touch("checkpoint/server.safetensors");
  {
    RunFolderWriter writer(folder_, kRecipe, Existing::kResume);
    writer.log(ClientLost{.client = 2});
    EXPECT_FALSE(writer.is_finished());
  }
  EXPECT_TRUE(fs::exists(folder_ / "checkpoint/server.safetensors"));
  EXPECT_THAT(read_text_file(folder_ / "events.jsonl"),
              MatchesRegex("\\{.*\"client\":1.*\\}\n\\{.*\"client\":2.*\\}\n"));
  touch("summary.json");
  EXPECT_TRUE(RunFolderWriter(folder_, kRecipe, Existing::kResume).is_finished());
}

TEST_F(RunFolderWriterTest, OtherDataAreRefusedAlsoByAFinishedRun) {
  const auto check = [&](Existing existing, const std::string& fingerprint) {
    return error_text([&] { RunFolderWriter(folder_, kRecipe, existing).check_data(fingerprint); });
  };
  EXPECT_EQ(check(Existing::kRefuse, "one"), "");
  EXPECT_EQ(check(Existing::kResume, "one"), "");
  EXPECT_THAT(check(Existing::kResume, "two"), HasSubstr("begun with other data: found two, expected one"));
  touch("summary.json");
  EXPECT_EQ(check(Existing::kResume, "one"), "");
  EXPECT_THAT(check(Existing::kResume, "two"), HasSubstr("begun with other data"));
  EXPECT_EQ(check(Existing::kOverwrite, "two"), "");
  fs::remove(folder_ / "checkpoint/data");
  touch("summary.json");
  EXPECT_EQ(check(Existing::kResume, "three"), "");  // a finished run of an earlier build
  EXPECT_FALSE(fs::exists(folder_ / "checkpoint/data"));
}

TEST_F(RunFolderWriterTest, OverwriteRemovesTheRunAndNothingElse) {
  {
    RunFolderWriter writer(folder_, kRecipe, Existing::kRefuse);
    writer.log(ClientLost{});
  }
  for (const char* name :
       {"summary.json", "model.safetensors", "report.html", "checkpoint/server.safetensors",
        "checkpoint/round-00001/client-00000.json", "my-notes.txt"}) {
    touch(name);
  }
  const RunFolderWriter writer(folder_, "seed = 2\n", Existing::kOverwrite);
  EXPECT_EQ(read_text_file(folder_ / "recipe.toml"), "seed = 2\n");
  EXPECT_EQ(read_text_file(folder_ / "events.jsonl"), "");
  EXPECT_FALSE(writer.is_finished());
  for (const char* name : {"summary.json", "model.safetensors", "report.html",
                           "checkpoint/server.safetensors", "checkpoint/round-00001"}) {
    EXPECT_FALSE(fs::exists(folder_ / name)) << name;
  }
  EXPECT_TRUE(fs::exists(folder_ / "my-notes.txt"));
}

TEST_F(RunFolderWriterTest, EventsAreLinesWithTheirTime) {
  RunFolderWriter writer(folder_, kRecipe, Existing::kRefuse);
  writer.log(ClientLost{.round = 3, .client = 4});
  writer.log(ClientProgress{});  // too frequent to be logged
  EXPECT_THAT(read_text_file(folder_ / "events.jsonl"),
              MatchesRegex("\\{\"event\":\"client-lost\",\"round\":3,\"client\":4,"
                           "\"time\":\"20..-[01].-[0-3].T[0-2].:[0-5].:[0-5].\\.[0-9][0-9][0-9]Z\"\\}\n"));
}

TEST_F(RunFolderWriterTest, ACutLastLineIsDropped) {
  const std::string whole = event_line(ClientLost{.client = 1}, "") + "\n";
  const std::string cut = whole.substr(0, 12);
  for (const std::string& left : {whole + cut, cut, std::string(), whole}) {
    fs::remove_all(folder_);
    { const RunFolderWriter writer(folder_, kRecipe, Existing::kRefuse); }
    write_file_atomically(folder_ / "events.jsonl", left);
    RunFolderWriter writer(folder_, kRecipe, Existing::kResume);
    writer.log(ClientLost{.client = 2});
    std::ifstream log(folder_ / "events.jsonl");
    std::string line;
    std::vector<Event> events;
    while (std::getline(log, line)) events.push_back(parse_event(line, "line").value());
    std::vector<Event> expected = {ClientLost{.client = 2}};
    if (left.find('\n') != std::string::npos) expected.insert(expected.begin(), ClientLost{.client = 1});
    EXPECT_EQ(events, expected);
  }
}

TEST_F(RunFolderWriterTest, AFolderThatCannotBeMade) {
  write_file_atomically(parent_ / "file", std::string_view("in the way"));
  EXPECT_THAT(error_text([&] { RunFolderWriter(parent_ / "file/run", kRecipe, Existing::kRefuse); },
                         Error::Kind::kFailure),
              HasSubstr("file/run"));
}

}  // namespace
}  // namespace bitfed
