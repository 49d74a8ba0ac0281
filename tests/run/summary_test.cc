#include "bitfed/run/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bitfed/base/byte_io.h"
#include "tests/base/error_text.h"
#include "tests/base/temporary_folder.h"
#include "tests/run/some_summary.h"

namespace bitfed {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string refusal(const std::string& text) {
  return error_text([&] { parse_summary(text, "summary.json"); });
}

TEST(Summary, IsReadAsItIsWritten) {
  const RunSummary summary = some_summary();
  const std::string text = summary_text(summary);
  // No field was forgotten in some_summary().
  for (const char* empty : {"null", "\"\"", "[]", ": 0,"}) EXPECT_THAT(text, Not(HasSubstr(empty)));
  EXPECT_EQ(parse_summary(text, "text"), summary);
  EXPECT_EQ(summary_text(parse_summary(text, "text")), text);
}

TEST(Summary, KeepsItsBytes) {
  RunSummary summary;
  summary.accuracy = 1;
  summary.client_results = {{0, std::nullopt, 1, 0, std::nullopt, std::nullopt}};
  const std::string text = summary_text(summary);
  EXPECT_THAT(text, testing::StartsWith("{\n \"name\": \"\",\n \"method\": \"\",\n \"model\": \"\",\n"));
  EXPECT_THAT(text, HasSubstr(" \"accuracy\": 1.0,\n \"validation_accuracy\": null,\n"));
  EXPECT_THAT(text, HasSubstr(" \"notes\": [],\n"));
  EXPECT_THAT(text,
              testing::EndsWith(" \"client_results\": [\n  {\n   \"client\": 0,\n   \"name\": null,\n"
                                "   \"samples\": 1,\n   \"test_samples\": 0,\n"
                                "   \"global_accuracy\": null,\n   \"local_accuracy\": null\n  }\n ]\n}\n"));
}

TEST(Summary, OfAnotherVersion) {
  EXPECT_EQ(parse_summary("{}", "text"), RunSummary());
  EXPECT_EQ(parse_summary(R"({"something_new": {}, "accuracy": null})", "text"), RunSummary());
}

TEST(Summary, InItsFolder) {
  const TemporaryFolder folder;
  EXPECT_THAT(error_text([&] { read_summary(folder.path()); }), HasSubstr("summary.json: not found"));
  write_summary(folder.path(), some_summary());
  EXPECT_EQ(read_text_file(folder / "summary.json"), summary_text(some_summary()));
  EXPECT_EQ(read_summary(folder.path()), some_summary());
}

TEST(Summary, WhatIsMalformedIsNamed) {
  EXPECT_THAT(refusal("{\"name\": "), HasSubstr("summary.json: found text that is not JSON"));
  EXPECT_EQ(refusal("[]"), "summary.json: found array, expected an object");
  EXPECT_EQ(refusal(R"({"accuracy": "high"})"), "summary.json: accuracy: found string, expected a number");
  EXPECT_EQ(refusal(R"({"clients": -3})"), "summary.json: clients: found -3, expected a count");
  EXPECT_EQ(refusal(R"({"name": 7})"), "summary.json: name: found 7, expected a string");
  EXPECT_EQ(refusal(R"({"notes": {}})"), "summary.json: notes: found object, expected an array");
  EXPECT_THAT(refusal(R"({"client_class_counts": [[4294967296]]})"),
              HasSubstr("client_class_counts[0][0]: found 4294967296, expected a count"));
  EXPECT_THAT(refusal(R"({"client_class_counts": [[1, 2], [3]]})"),
              HasSubstr("client_class_counts: found rows of 2 and of 1"));
  EXPECT_THAT(refusal(R"({"confusion_matrix": [[1, 2]]})"), HasSubstr("confusion_matrix: found 1 rows of 2"));
}

TEST(Summary, MalformedRowsAreNumbered) {
  EXPECT_THAT(refusal(R"({"client_results": {}})"),
              HasSubstr("client_results: found object, expected an array"));
  EXPECT_THAT(refusal(R"({"client_results": [4]})"),
              HasSubstr("client_results[0]: found 4, expected an object"));
  EXPECT_THAT(
      refusal(R"({"client_results": [{"client": 0, "samples": 1, "test_samples": 0}, {"samples": 1}]})"),
      HasSubstr("client_results[1]: client: found nothing, expected a count"));
  EXPECT_THAT(refusal(R"({"client_results": [{"client": 0, "name": 7}]})"),
              HasSubstr("client_results[0]: name: found 7, expected a string"));
  EXPECT_THAT(
      refusal(
          R"({"client_results": [{"client": 0, "samples": 1, "test_samples": 1, "local_accuracy": "high"}]})"),
      HasSubstr("client_results[0]: local_accuracy: found string, expected a number"));
  EXPECT_THAT(refusal(R"({"airtime": [{"bits_per_second": 0.5}]})"),
              HasSubstr("airtime[0]: bits_per_second: found 0.5, expected a count"));
  EXPECT_THAT(refusal(R"({"airtime": [{"bits_per_second": 300, "upload_seconds": null}]})"),
              HasSubstr("airtime[0]: upload_seconds: found nothing, expected a number"));
}

}  // namespace
}  // namespace bitfed
