#include "cli/command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/error_text.h"

namespace bitfed::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A program with every kind of option; what its command was called with.
struct Program {
  std::string recipe;
  std::vector<std::string> more;
  std::vector<std::string> sets = {"before"};
  std::vector<std::string> rows;
  std::vector<uint64_t> seeds = {0};
  std::string format = "c";
  unsigned threads = 0;
  int64_t offset = -1;
  double rate = 0.5;
  std::optional<uint64_t> seed;
  bool resume = false;
  bool overwrite = false;
  std::string called;
  Command app{"prog", "A program."};

  Program() {
    app.set_version("1.2");
    Command* run = app.add_subcommand("run", "Runs.");
    run->add_option("RECIPE", recipe, "What to run")->required();
    run->add_option("MORE", more, "Others");
    run->add_option("--set", sets, "One value")->type_name("KEY=VALUE")->one_at_a_time();
    run->add_option("--rows", rows, "Some");
    run->add_option("--seeds", seeds, "As 0,1,2")->separated_by(',');
    run->add_option("--format", format, "Which")->one_of({"c", "onnx"})->show_default();
    run->add_option("--threads,--jobs", threads, "How many,\nin all")->between(1, 16);
    run->add_option("--offset", offset, "Where");
    run->add_option("--rate", rate, "How fast")->at_least(0)->show_default();
    run->add_option("--seed", seed, "Which");
    Option* first = run->add_flag("--resume", resume, "Go on");
    run->add_flag("--overwrite", overwrite, "Begin again")->excludes(first);
    run->footer("The end.");
    run->callback([this] { called = "run"; });
    Command* admin = app.add_subcommand("admin", "Operates.");
    admin->add_option("--state", recipe, "The folder")->required();
    admin->add_subcommand("status", "How it is")->callback([this] { called = "status"; });
    Command* serve = app.add_subcommand("serve", "Not here.");
    serve->accept_anything();
    serve->callback([this] { called = "serve"; });
  }

  void operator()(std::vector<const char*> words) {
    words.insert(words.begin(), "prog");
    app.run(static_cast<int>(words.size()), words.data());
  }
};

std::string error_of(std::vector<const char*> words) {
  return error_text([&] { Program()(std::move(words)); });
}

TEST(Command, OptionsAndArgumentsInAnyOrder) {
  Program program;
  program({"run", "--set", "a=1", "x.toml", "--threads=4", "--set=b=2", "y", "--resume", "--seed",
           "18446744073709551615", "z", "--rate", "1e-5", "--offset", "-7"});
  EXPECT_EQ(program.called, "run");
  EXPECT_EQ(program.recipe, "x.toml");
  EXPECT_THAT(program.more, ElementsAre("y", "z"));
  EXPECT_THAT(program.sets, ElementsAre("a=1", "b=2"));
  EXPECT_EQ(program.threads, 4u);
  EXPECT_EQ(program.seed, 18446744073709551615u);
  EXPECT_EQ(program.rate, 1e-5);
  EXPECT_EQ(program.offset, -7);
  EXPECT_TRUE(program.resume);
  EXPECT_FALSE(program.overwrite);
}

TEST(Command, WhatIsNotGivenStays) {
  Program program;
  program({"run", "x"});
  EXPECT_THAT(program.more, IsEmpty());
  EXPECT_THAT(program.sets, ElementsAre("before"));
  EXPECT_THAT(program.seeds, ElementsAre(0));
  EXPECT_EQ(program.format, "c");
  EXPECT_FALSE(program.seed.has_value());
}

TEST(Command, SeveralValues) {
  Program program;
  program({"run", "x", "--rows", "a", "b", "--seeds", "3,1,2", "--rows", "c"});
  EXPECT_THAT(program.rows, ElementsAre("a", "b", "c"));
  EXPECT_THAT(program.seeds, ElementsAre(3, 1, 2));
}

TEST(Command, AfterTwoDashesNothingIsAnOption) {
  Program program;
  program({"run", "--jobs", "2", "--", "--resume", "-"});
  EXPECT_EQ(program.recipe, "--resume");
  EXPECT_THAT(program.more, ElementsAre("-"));
  EXPECT_FALSE(program.resume);
}

TEST(Command, CommandsWithinCommands) {
  Program program;
  program({"admin", "--state", "dir", "status"});
  EXPECT_EQ(program.called, "status");
  EXPECT_EQ(program.recipe, "dir");
  program({"serve", "--any", "thing"});
  EXPECT_EQ(program.called, "serve");
}

TEST(Command, ErrorsAreOneLine) {
  EXPECT_EQ(error_of({}), "found no command; see prog --help");
  EXPECT_EQ(error_of({"rum"}), "rum: unknown command (did you mean 'run'?); see prog --help");
  EXPECT_EQ(error_of({"run"}), "RECIPE: missing; see prog run --help");
  EXPECT_EQ(error_of({"run", "--thread", "2"}),
            "--thread: unknown option (did you mean '--threads'?); see prog run --help");
  EXPECT_EQ(error_of({"run", "x", "--threads", "0"}),
            "--threads: found 0, expected a number from 1 to 16; see prog run --help");
  EXPECT_EQ(error_of({"run", "x", "--threads", "two"}),
            "--threads: found 'two', expected a number; see prog run --help");
  EXPECT_EQ(error_of({"run", "x", "--threads", "1.5"}),
            "--threads: found '1.5', expected a whole number from 0; see prog run --help");
  EXPECT_EQ(error_of({"run", "x", "--seed", "-1"}),
            "--seed: found '-1', expected a whole number from 0; see prog run --help");
  EXPECT_EQ(error_of({"run", "x", "--seed", "18446744073709551616"}),
            "--seed: found '18446744073709551616', expected a whole number from 0; see prog run --help");
  EXPECT_EQ(error_of({"run", "x", "--rate", "inf"}),
            "--rate: found 'inf', expected a number; see prog run --help");
  EXPECT_EQ(error_of({"run", "x", "--rate=-1"}),
            "--rate: found -1, expected a number from 0; see prog run --help");
  EXPECT_EQ(error_of({"run", "x", "--seeds", "1,,2"}),
            "--seeds: found '', expected a whole number from 0; see prog run --help");
  EXPECT_EQ(error_of({"run", "x", "--format", "d"}),
            "--format: found 'd', expected one of: c, onnx; see prog run --help");
  EXPECT_EQ(error_of({"run", "x", "--format"}),
            "--format: found no value, expected c|onnx; see prog run --help");
  EXPECT_EQ(error_of({"run", "x", "--set", "--resume"}),
            "--set: found no value, expected KEY=VALUE; see prog run --help");
  EXPECT_EQ(error_of({"run", "x", "--resume=yes"}),
            "--resume: found a value, expected none; see prog run --help");
  EXPECT_EQ(error_of({"run", "x", "--resume", "--overwrite"}),
            "--overwrite: found beside --resume, expected one of the two; see prog run --help");
  EXPECT_EQ(error_of({"admin", "status"}), "--state: missing; see prog admin --help");
  EXPECT_EQ(error_of({"admin", "--state", "x", "status", "more"}),
            "found 'more', expected no further argument; see prog admin status --help");
}

TEST(Command, HelpAndVersion) {
  testing::internal::CaptureStdout();
  Program program;
  program({"run", "--help"});
  program({"--version"});
  EXPECT_EQ(program.called, "");
  const std::string text = testing::internal::GetCapturedStdout();
  EXPECT_THAT(text, HasSubstr("Runs.\nUsage: prog run [OPTIONS] RECIPE [MORE...]\n"));
  EXPECT_THAT(text, HasSubstr("\n  --set KEY=VALUE...          One value\n"));
  EXPECT_THAT(text, HasSubstr("\n  --format c|onnx=c           Which\n"));
  EXPECT_THAT(text,
              HasSubstr("\n  --threads, --jobs N         How many,\n                              in all\n"));
  EXPECT_THAT(text, HasSubstr("\n  --rate N=0.5                How fast\n"));
  EXPECT_THAT(text, HasSubstr("\nThe end.\n1.2\n"));
}

}  // namespace
}  // namespace bitfed::cli
