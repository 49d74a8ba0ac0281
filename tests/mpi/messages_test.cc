#include "bitfed/mpi/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/error_text.h"

namespace bitfed {
namespace {

using testing::HasSubstr;

Results some_results() {
  Results results{.busy_seconds = 1.5, .wants_more = true};
  TrainedClient first;
  first.result = {.client = 7, .upload = {1, 2}, .samples = 3, .trained_samples = 9, .train_seconds = 0.25};
  first.result.keeps_state = true;
  first.kept = {4, 5, 6};
  first.judged = {true, 0.5};
  TrainedClient second;
  second.result.added_up = true;
  second.result.upload_bytes = 77;
  results.clients = {first, second};
  return results;
}

TEST(MessagesTest, ComeBackAsTheyWere) {
  EXPECT_EQ(read_number(number_message(MessageKind::kJob, 77)), 77u);
  EXPECT_EQ(kind_of(number_message(MessageKind::kJob, 77)), MessageKind::kJob);
  EXPECT_EQ(kind_of(plain_message(MessageKind::kBye)), MessageKind::kBye);

  const Failure failure = read_failed(failed_message({Error::Kind::kInput, "no data"}));
  EXPECT_EQ(failure.kind, Error::Kind::kInput);
  EXPECT_EQ(failure.text, "no data");

  const Hello hello = read_hello(hello_message({"0.1.0", "node7", 3, 2}));
  EXPECT_EQ(hello.program, "0.1.0");
  EXPECT_EQ(hello.host, "node7");
  EXPECT_EQ(hello.threads, 3u);
  EXPECT_EQ(hello.processors, 2u);

  const Ready ready = read_ready(ready_message({"seed = 1", "a GPU", Failure{Error::Kind::kFailure, "x"}}));
  EXPECT_EQ(ready.experiment, "seed = 1");
  EXPECT_EQ(ready.device, "a GPU");
  EXPECT_EQ(ready.failure->text, "x");
  EXPECT_FALSE(read_ready(ready_message({})).failure.has_value());

  const std::vector<ClientTask> tasks = read_work(work_message({{3, {1, 2}}, {900000, {}}}));
  ASSERT_EQ(tasks.size(), 2u);
  EXPECT_EQ(tasks[0].kept, Bytes({1, 2}));
  EXPECT_EQ(tasks[1].client, 900000u);

  const Results results = read_results(results_message(some_results()));
  EXPECT_EQ(results.busy_seconds, 1.5);
  EXPECT_TRUE(results.wants_more);
  ASSERT_EQ(results.clients.size(), 2u);
  EXPECT_EQ(results.clients[0].result.client, 7u);
  EXPECT_EQ(results.clients[0].result.upload, Bytes({1, 2}));
  EXPECT_EQ(results.clients[0].result.samples, 3u);
  EXPECT_EQ(results.clients[0].result.trained_samples, 9u);
  EXPECT_EQ(results.clients[0].result.train_seconds, 0.25);
  EXPECT_TRUE(results.clients[0].result.keeps_state);
  EXPECT_EQ(results.clients[0].kept, Bytes({4, 5, 6}));
  EXPECT_TRUE(results.clients[0].judged.has_model);
  EXPECT_EQ(results.clients[0].judged.accuracy, 0.5);
  EXPECT_FALSE(results.clients[1].judged.accuracy.has_value());
  EXPECT_FALSE(results.clients[0].result.added_up);
  EXPECT_TRUE(results.clients[1].result.added_up);
  EXPECT_EQ(results.clients[1].result.upload_bytes, 77u);

  const RoundStart start = read_round(round_message({9, 4, 0.5, {{7, 8}, 0}}));
  EXPECT_EQ(start.number, 9u);
  EXPECT_EQ(start.round, 4u);
  EXPECT_EQ(start.broadcast.bytes, Bytes({7, 8}));
  EXPECT_EQ(start.broadcast.follows, 0u);
  EXPECT_EQ(start.sum_below, 0.5);
  State sum;
  sum.add_scalar<uint32_t>("count", 3);
  const Part sums = read_part(part_message({9, sum}));
  EXPECT_EQ(sums.number, 9u);
  EXPECT_EQ(sums.sum, sum);

  const EvaluationPart part{1, 2, 3, 4};
  const EvaluationTask task = read_evaluate(evaluate_message({part, {{}, 5}}));
  EXPECT_EQ(task.part, part);
  EXPECT_EQ(task.model.follows, 5u);
  const Confusions confusions = read_confusion(confusion_message({{{1, 2}, {3, 4}}, {}}));
  EXPECT_EQ(confusions.test, Confusion({{1, 2}, {3, 4}}));
  EXPECT_TRUE(confusions.validation.empty());

  const ClientFraction progress = read_progress(progress_message({5, 0.75}));
  EXPECT_EQ(progress.client, 5u);
  EXPECT_EQ(progress.fraction, 0.75);
}

TEST(MessagesTest, WhatIsSmallGoesWithTheMessage) {
  const Bytes kilobyte(1024, 3);
  EXPECT_EQ(shared(kilobyte, 256).bytes, kilobyte);
  EXPECT_EQ(shared(kilobyte, 256).follows, 0u);
  EXPECT_EQ(shared(kilobyte, 257).bytes, Bytes());
  EXPECT_EQ(shared(kilobyte, 257).follows, 1024u);
}

// Every message that is cut short or too long is refused.
TEST(MessagesTest, WhatDoesNotFitIsRefused) {
  const auto refuses = [](const Bytes& message, auto read) {
    for (size_t size = 1; size < message.size(); ++size) {
      EXPECT_NE(error_text([&] { read(Bytes(message.begin(), message.begin() + static_cast<long>(size))); }),
                "")
          << size;
    }
    Bytes longer = message;
    longer.push_back(0);
    EXPECT_THAT(error_text([&] { read(longer); }), HasSubstr("after its end"));
  };
  refuses(results_message(some_results()), read_results);
  refuses(work_message({{3, {1, 2}}}), read_work);
  refuses(hello_message({"a", "b", 1, 1}), read_hello);
  refuses(ready_message({"c", "d", {}}), read_ready);
  refuses(failed_message({Error::Kind::kInput, "no"}), read_failed);
  refuses(round_message({1, 2, 3, {{4}, 0}}), read_round);
  refuses(part_message({1, {}}), read_part);
  refuses(evaluate_message({{1, 2, 3, 4}, {{5}, 0}}), read_evaluate);
  refuses(confusion_message({{{1, 2}, {3, 4}}, {{5}}}), read_confusion);
  refuses(progress_message({1, 1}), read_progress);
  refuses(number_message(MessageKind::kJob, 1), read_number);
  EXPECT_NE(error_text([] { kind_of(Bytes()); }), "");
  EXPECT_NE(error_text([] { kind_of(Bytes{99}); }), "");
  Bytes many = work_message({});
  many[8] = 0xff;  // of the count
  EXPECT_THAT(error_text([&] { read_work(many); }), HasSubstr("expected at most 0"));
}

TEST(MessagesTest, FailuresKeepTheirKind) {
  const auto failure_of = [](const auto& error) {
    try {
      throw error;
    } catch (...) {
      return current_failure();
    }
  };
  EXPECT_EQ(failure_of(input_error("bad")).kind, Error::Kind::kInput);
  EXPECT_EQ(failure_of(std::bad_alloc()).text, "out of memory");
  EXPECT_EQ(failure_of(std::runtime_error("other")).text, "other");
}

}  // namespace
}  // namespace bitfed
