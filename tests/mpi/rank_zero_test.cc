#include "bitfed/mpi/rank_zero.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "bitfed/mpi/rank_transport.h"
#include "bitfed/mpi/worker.h"
#include "tests/base/error_text.h"
#include "tests/base/temporary_folder.h"
#include "tests/federated/dark_and_light.h"
#include "tests/mpi/thread_ranks.h"

namespace bitfed {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// Personal models, dropout, and a preparation: everything that a transport can get wrong.
constexpr const char* kRecipe = R"(
name = "people"
seed = 4
rounds = 5
[data]
partition = { kind = "column" }
[model]
name = "mlp"
hidden = [8]
[method]
name = "fed-bin-mlp"
[federation]
clients_per_round = 7
dropout = 0.2
[client]
batch = 8
)";

Dataset table(size_t samples) {
  Dataset data;
  data.name = "made here";
  data.columns = {"x", "y"};
  data.class_names = {"no", "yes"};
  for (size_t person = 0; person < 11; ++person) data.group_names.push_back("p" + std::to_string(person));
  for (size_t i = 0; i < samples; ++i) {
    data.labels.push_back(i % 3 == 0);
    data.values.push_back(i % 3 == 0 ? 1.5f : -1.0f);
    data.values.push_back(static_cast<float>(i % 7));
    data.groups.push_back(static_cast<uint32_t>(i % 11));
  }
  return data;
}

Experiment load(const std::string& more = "", Dataset test = table(99)) {
  return read_experiment(Config::parse(kRecipe + more, "recipe"), {table(330), std::move(test)}, "run",
                         ClientsAre::kSimulated);
}

constexpr const char* kNetwork = R"(
rounds = 2
[data]
partition = { kind = "iid", clients = 66 }
[model]
name = "custom"
layers = ["dense classes bias"]
[method]
name = "fedavg"
[federation]
clients_per_round = 33
norm_bound = 1.0
[client]
epochs = 1
batch = 2
)";

class RankZeroTest : public testing::Test {
 protected:
  ExperimentOptions options(const std::string& name) {
    ExperimentOptions options;
    options.out = folder_ / name;
    options.threads = 1;
    options.existing = RunFolderWriter::Existing::kResume;
    options.stop = [this] { return stop_at_ > 0 && finished_ >= stop_at_; };
    return options;
  }

  static WorkerOptions worker() {
    return {
        .program = "1", .threads = 2, .stop = {}, .load = [](uint32_t) { return load(); }, .run_alone = {}};
  }

  // Of rank 0. With 0 threads it trains nobody.
  static WorkerOptions own(unsigned threads = 1) {
    WorkerOptions own = worker();
    own.threads = threads;
    return own;
  }

  RunSummary run(int size, const std::string& name, const WorkerOptions& other = worker(),
                 const WorkerOptions& zeroth = own()) {
    ThreadRanks ranks(size);
    RunSummary summary;
    finished_ = 0;
    ranks.run(
        [&](Communicator& zero) {
          RankZero federation(zero, zeroth);
          summary = federation
                        .run(0, load(), options(name),
                             [&](const Event& event) {
                               if (std::holds_alternative<ClientFinished>(event)) ++finished_;
                             })
                        .summary;
        },
        [&](Communicator& one) { run_worker(one, other); });
    return summary;
  }

  TemporaryFolder folder_;
  size_t stop_at_ = 0;
  std::atomic<size_t> finished_ = 0;
};

TEST_F(RankZeroTest, AnyNumberOfRanksGivesTheSameRun) {
  const RunSummary alone = run_experiment(load(), options("alone"), [](const Event&) {}).summary;
  for (const auto& [size, threads] : {std::pair(2, 0), {2, 1}, {4, 3}, {7, 0}, {7, 1}}) {
    const RunSummary ranks = run(size, fmt::format("{}-{}", size, threads), worker(), own(threads));
    EXPECT_EQ(ranks.model_sha256, alone.model_sha256);
    EXPECT_EQ(ranks.client_results, alone.client_results);
    EXPECT_EQ(ranks.confusion_matrix, alone.confusion_matrix);
    EXPECT_EQ(ranks.accuracy, alone.accuracy);
    EXPECT_EQ(ranks.local_accuracy_mean, alone.local_accuracy_mean);
    EXPECT_EQ(ranks.total_upload_bytes, alone.total_upload_bytes);
    EXPECT_EQ(ranks.train_samples, alone.train_samples);
    EXPECT_EQ(ranks.ranks, static_cast<uint64_t>(size));
    EXPECT_EQ(ranks.hosts->size(), 1u);
  }
  EXPECT_FALSE(alone.ranks.has_value());
}

// Of a round's results rank 0 keeps what is logged; the uploads reach it as one sum.
TEST_F(RankZeroTest, UploadsAreAddedUpByTheWorkers) {
  std::vector<uint64_t> received, uploaded;
  const auto note = [&](const Event& event) {
    const auto* finished = std::get_if<RoundFinished>(&event);
    if (finished == nullptr || finished->round == 0) return;
    received.push_back(*finished->received_bytes);
    uploaded.push_back(finished->upload_bytes);
  };
  const auto load_network = [](uint32_t) {
    return read_experiment(Config::parse(kNetwork, "recipe"), {some_images(132), some_images(20)}, "run",
                           ClientsAre::kSimulated);
  };
  const std::string alone =
      run_experiment(load_network(0), options("alone"), [](const Event&) {}).summary.model_sha256;
  for (const int size : {2, 3, 6, 30}) {  // 33 clients a round: with 29 workers every upload is sent
    const bool trains = size == 6;
    received.clear();
    uploaded.clear();
    ThreadRanks ranks(size);
    WorkerOptions other = worker();
    other.load = load_network;
    ranks.run(
        [&](Communicator& zero) {
          RankZero federation(zero, own(trains ? 1 : 0));
          const auto result = federation.run(0, load_network(0), options(std::to_string(size)), note);
          EXPECT_EQ(result.summary.model_sha256, alone) << size;
        },
        [&](Communicator& one) { run_worker(one, other); });
    ASSERT_EQ(received.size(), 2u);
    if (size <= 6) {
      EXPECT_LT(received[1], uploaded[1] / 3) << size;
    } else {
      EXPECT_GT(received[1], uploaded[1]) << size;
    }
  }
}

// It counts as a worker, and its errors name it.
TEST_F(RankZeroTest, RankZeroTrainsClientsItself) {
  for (const unsigned threads : {0, 1}) {
    std::vector<uint32_t> workers;
    ThreadRanks ranks(3);
    ranks.run(
        [&](Communicator& zero) {
          RankZero(zero, own(threads))
              .run(0, load(), options(std::to_string(threads)), [&](const Event& event) {
                if (const auto* finished = std::get_if<RoundFinished>(&event))
                  workers.push_back(*finished->workers);
              });
        },
        [&](Communicator& one) { run_worker(one, worker()); });
    EXPECT_THAT(workers, testing::Each(2 + threads));
  }
  WorkerOptions stopped = own();
  stopped.stop = [] { return true; };
  EXPECT_EQ(error_text([&] { run(2, "stopped", worker(), stopped); }, Error::Kind::kStopped), "stopped");
}

TEST_F(RankZeroTest, AStoppedRunGoesOnWithAnotherNumberOfRanks) {
  const std::string expected =
      run_experiment(load(), options("alone"), [](const Event&) {}).summary.model_sha256;
  for (const size_t moment : {1, 12, 20, 30}) {
    const std::string name = "stopped-" + std::to_string(moment);
    stop_at_ = moment;
    EXPECT_EQ(error_text([&] { run(4, name); }, Error::Kind::kStopped), "stopped");
    stop_at_ = 0;
    EXPECT_EQ(run(3, name).model_sha256, expected);
  }
}

TEST_F(RankZeroTest, ARankThatReadsSomethingElseIsNamed) {
  WorkerOptions other = worker();
  other.program = "2";
  EXPECT_THAT(error_text([&] { run(3, "program", other); }),
              HasSubstr("found bitfed 2, expected that of rank 0, 1"));
  other = worker();
  other.load = [](uint32_t) -> Experiment { throw input_error("mnist: not found"); };
  EXPECT_THAT(error_text([&] { run(3, "data", other); }), StartsWith("rank 1 on "));
  EXPECT_THAT(error_text([&] { run(3, "data", other); }), HasSubstr(": mnist: not found"));
  other = worker();
  other.load = [](uint32_t) -> Experiment { throw std::bad_alloc(); };
  EXPECT_THAT(error_text([&] { run(3, "memory", other); }, Error::Kind::kFailure),
              HasSubstr("out of memory"));
  other = worker();
  other.load = [](uint32_t) { return load("learning_rate = 0.5\n"); };
  EXPECT_THAT(error_text([&] { run(3, "recipe", other); }),
              HasSubstr("read another recipe or other data than rank 0"));
  other.load = [](uint32_t) { return load("", table(98)); };
  EXPECT_THAT(error_text([&] { run(3, "test data", other); }), HasSubstr("'test samples = "));
  for (const char* name : {"program", "data", "memory", "recipe", "test data"})
    EXPECT_FALSE(std::filesystem::exists(folder_ / name)) << name;
}

// The signal may reach a worker alone.
TEST_F(RankZeroTest, AWorkerThatIsStoppedStopsAll) {
  WorkerOptions other = worker();
  other.stop = [] { return true; };
  EXPECT_EQ(error_text([&] { run(3, "stopped", other); }, Error::Kind::kStopped), "stopped");
}

TEST_F(RankZeroTest, WholeJobsAreDealtToRanks) {
  ThreadRanks ranks(4);
  std::vector<std::atomic<int>> runs(10);
  std::vector<uint32_t> done;
  std::vector<int> by;
  WorkerOptions other = worker();
  other.run_alone = [&](uint32_t job, const std::function<bool()>&) { ++runs[job]; };
  ranks.run(
      [&](Communicator& zero) {
        WorkerOptions zeroth = own();
        zeroth.run_alone = other.run_alone;
        RankZero(zero, zeroth)
            .run_alone(
                {0, 2, 4, 6, 8, 9}, {}, [&](uint32_t, int rank) { by.push_back(rank); },
                [&](uint32_t job) { done.push_back(job); });
      },
      [&](Communicator& one) { run_worker(one, other); });
  EXPECT_THAT(done, testing::UnorderedElementsAre(0, 2, 4, 6, 8, 9));
  for (uint32_t job = 0; job < runs.size(); ++job) EXPECT_EQ(runs[job], job % 2 == 0 || job == 9 ? 1 : 0);
  EXPECT_EQ(by.size(), 6u);
  EXPECT_THAT(by, testing::Contains(0));
}

// Of the ranks 1, 2 and 3 the last differs.
TEST_F(RankZeroTest, ARankThatRunsAJobAloneIsNamedAsItIs) {
  const auto run_alone = [&](const WorkerOptions& last) {
    ThreadRanks ranks(4);
    WorkerOptions other = worker();
    other.run_alone = [](uint32_t, const std::function<bool()>&) {};
    return error_text([&] {
      ranks.run(
          [&](Communicator& zero) {
            RankZero(zero, own(0))
                .run_alone(
                    {0, 1, 2}, {}, [](uint32_t, int) {}, [](uint32_t) {});
          },
          [&](Communicator& one) { run_worker(one, one.rank() == 3 ? last : other); });
    });
  };
  WorkerOptions last = worker();
  last.host = "node7";
  last.run_alone = [](uint32_t, const std::function<bool()>&) { throw input_error("no data"); };
  EXPECT_EQ(run_alone(last), "rank 3 on node7: no data");
  last.program = "2";
  EXPECT_EQ(run_alone(last), "rank 3 on node7: found bitfed 2, expected that of rank 0, 1");
}

TEST_F(RankZeroTest, JobsThatDoNotFillTheRanksAreRunByWhateverIsFaster) {
  ThreadRanks ranks(5);  // four workers with two threads
  ranks.run(
      [&](Communicator& zero) {
        RankZero federation(zero, own(0));
        EXPECT_FALSE(federation.is_faster_alone(1, 1));   // 1 client's time, together 1
        EXPECT_TRUE(federation.is_faster_alone(2, 1));    // 1, 2
        EXPECT_FALSE(federation.is_faster_alone(2, 10));  // 5, 4
        EXPECT_TRUE(federation.is_faster_alone(3, 10));   // 5, 6
        EXPECT_FALSE(federation.is_faster_alone(3, 16));  // 8, 6
      },
      [&](Communicator& one) { run_worker(one, worker()); });
}

TEST_F(RankZeroTest, ARankWithFewerProcessorsThanThreadsIsNamed) {
  WorkerOptions first = worker();
  first.processors = 2;
  WorkerOptions second = worker();
  second.host = "node7";
  second.processors = 1;
  std::vector<std::string> warnings;
  ThreadRanks ranks(3);
  ranks.run(
      [&](Communicator& zero) {
        RankZero federation(zero, own(0), [&](const std::string& text) { warnings.push_back(text); });
        for (const char* name : {"once", "again"})
          federation.run(0, load(), options(name), [](const Event&) {});
      },
      [&](Communicator& one) { run_worker(one, one.rank() == 1 ? first : second); });
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_THAT(warnings[0], StartsWith("rank 2 on node7: 2 threads, 1 processor;"));
}

// A worker that was changed: `change` gets what it is about to send to rank 0, and returns what it sends.
class ChangedRank : public Communicator {
 public:
  using Change = std::function<std::vector<Bytes>(const Bytes& message, const RoundStart& round)>;
  ChangedRank(Communicator& rank, Change change) : rank_(rank), change_(std::move(change)) {}
  int rank() const override { return rank_.rank(); }
  int size() const override { return rank_.size(); }
  void send(int to, Bytes message) override {
    if (to != 0) return rank_.send(to, std::move(message));
    for (Bytes& changed : change_(message, round_)) rank_.send(to, std::move(changed));
  }
  std::optional<Message> poll() override {
    std::optional<Message> message = rank_.poll();
    if (message && kind_of(message->bytes) == MessageKind::kRound) round_ = read_round(message->bytes);
    return message;
  }
  void broadcast(const Bytes& bytes) override { rank_.broadcast(bytes); }
  Bytes receive_broadcast(size_t size) override { return rank_.receive_broadcast(size); }

 private:
  Communicator& rank_;
  Change change_;
  RoundStart round_;
};

class ChangedRankTest : public RankZeroTest {
 protected:
  // The error of a run of two workers, one of them changed.
  std::string error_with(int changed_rank, const ChangedRank::Change& change) {
    std::filesystem::remove_all(folder_ / "changed");
    ThreadRanks ranks(3);
    WorkerOptions other = worker();
    other.host = "node7";
    const auto note = [&](const Event& event) {
      const auto* progress = std::get_if<ClientProgress>(&event);
      strange_progress_ += progress != nullptr && progress->client >= 11 ? 1 : 0;
    };
    return error_text(
        [&] {
          ranks.run(
              [&](Communicator& zero) { RankZero(zero, own(0)).run(0, load(), options("changed"), note); },
              [&](Communicator& one) {
                ChangedRank changed(one, change);
                run_worker(one.rank() == changed_rank ? changed : one, other);
              });
        },
        Error::Kind::kFailure);
  }

  // Of all results of a rank.
  static ChangedRank::Change results(const std::function<void(Results*)>& change) {
    return [change](const Bytes& message, const RoundStart&) -> std::vector<Bytes> {
      if (kind_of(message) != MessageKind::kResults) return {message};
      Results results = read_results(message);
      if (results.clients.empty()) return {message};  // it asks for clients
      change(&results);
      return {results_message(results)};
    };
  }

  // A sum of so many uploads, as often as this before the results of a round of training.
  static ChangedRank::Change parts(uint64_t clients, size_t times) {
    return [clients, times](const Bytes& message, const RoundStart& round) {
      std::vector<Bytes> sent = {message};
      State sum;
      sum.add_scalar<uint64_t>("clients", clients);
      if (kind_of(message) == MessageKind::kResults && round.round > 0)
        sent.insert(sent.begin(), times, part_message({round.number, sum}));
      return sent;
    };
  }

  size_t strange_progress_ = 0;
};

TEST_F(ChangedRankTest, ResultsOfOtherClientsAreRefused) {
  const std::string expected = ", expected one of a client that it trains";
  EXPECT_EQ(error_with(1, results([](Results* some) { some->clients[0].result.client = 1000000; })),
            "rank 1 on node7: found a result of client 1000000" + expected);
  EXPECT_THAT(error_with(2, results([](Results* some) { some->clients.push_back(some->clients[0]); })),
              testing::EndsWith(expected));
  EXPECT_THAT(error_with(2, results([](Results* some) { some->clients[0].result.upload.clear(); })),
              StartsWith("rank 2 on node7: found no upload of client "));
}

TEST_F(ChangedRankTest, SumsThatDoNotFitTheResultsAreRefused) {
  const std::string expected = ": found a sum of uploads, expected none";
  EXPECT_EQ(error_with(1, parts(3, 2)), "rank 1 on node7" + expected);
  EXPECT_EQ(error_with(2, parts(3, 1)), "rank 2 on node7" + expected);
  const auto other_count = [](const Bytes& message, const RoundStart&) -> std::vector<Bytes> {
    if (kind_of(message) != MessageKind::kPart) return {message};
    Part part = read_part(message);
    part.sum = {};
    part.sum.add_scalar<uint64_t>("clients", 30);
    return {part_message(part)};
  };
  EXPECT_THAT(error_with(1, other_count),
              StartsWith("rank 1 on node7: found a sum of 30 uploads, expected "));
}

TEST_F(ChangedRankTest, ProgressOfOtherClientsIsNotShown) {
  const auto change = [](const Bytes& message, const RoundStart&) -> std::vector<Bytes> {
    if (kind_of(message) != MessageKind::kResults) return {message};
    return {progress_message({1000000, 0.5}), message};
  };
  EXPECT_EQ(error_with(1, change), "");
  EXPECT_EQ(strange_progress_, 0u);
}

// The clients that a worker has trained when it asks for more. Of these tasks client 0 takes fifty times as
// long as client 1.
class AskingWorkerTest : public RankZeroTest {
 protected:
  std::vector<uint32_t> trained_when_it_asks(unsigned threads, const std::vector<ClientTask>& tasks);
  // In one of some tries: on a busy machine a thread may begin, or look, milliseconds late.
  bool asks_after_client_1(unsigned threads, const std::vector<ClientTask>& tasks) {
    for (int tries = 0; tries < 20; ++tries) {
      if (trained_when_it_asks(threads, tasks) == std::vector<uint32_t>{1}) return true;
    }
    return false;
  }
};

std::vector<uint32_t> AskingWorkerTest::trained_when_it_asks(unsigned threads,
                                                             const std::vector<ClientTask>& tasks) {
  const auto read = [](uint32_t) {
    Dataset data = table(11 * 1000);
    for (size_t i = 0; i < 50000; ++i) {  // of the first person
      data.labels.push_back(i % 3 == 0);
      data.values.push_back(i % 3 == 0 ? 1.5f : -1.0f);
      data.values.push_back(static_cast<float>(i % 7));
      data.groups.push_back(0);
    }
    return read_experiment(Config::parse(std::string(kRecipe) + "epochs = 100\n", "recipe"),
                           {std::move(data), table(99)}, "run", ClientsAre::kSimulated);
  };
  std::vector<uint32_t> trained;
  ThreadRanks ranks(2);
  WorkerOptions other = worker();
  other.load = read;
  other.threads = threads;
  std::atomic<bool> stopped = false;
  other.stop = [&] { return stopped.load(); };
  ranks.run(
      [&](Communicator& zero) {
        const auto wait_for = [&](MessageKind kind) {
          for (;;) {
            const auto message = zero.poll();
            if (message && kind_of(message->bytes) == kind) return message->bytes;
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
          }
        };
        const Experiment experiment = read(0);
        const Bytes broadcast = encode(experiment.method->make_server()->broadcast(1));
        zero.send(1, number_message(MessageKind::kJob, 0));
        wait_for(MessageKind::kReady);
        zero.send(1, round_message({1, 1, 0, {{}, broadcast.size()}}));
        zero.broadcast(broadcast);
        zero.send(1, work_message(tasks));
        for (bool asks = false; !asks;) {
          const Results results = read_results(wait_for(MessageKind::kResults));
          for (const TrainedClient& client : results.clients) trained.push_back(client.result.client);
          asks = results.wants_more;
        }
        stopped = true;
        zero.send(1, plain_message(MessageKind::kEnd));
        wait_for(MessageKind::kBye);
      },
      [&](Communicator& one) { run_worker(one, other); });
  return trained;
}

// A thread that is done does not wait for the others, and nobody waits until all is done.
TEST_F(AskingWorkerTest, OnceAThreadIsIdleOrSoonWillBe) {
  EXPECT_TRUE(asks_after_client_1(2, {{0, {}}, {1, {}}}));
  EXPECT_TRUE(asks_after_client_1(1, {{1, {}}, {0, {}}}));
}

// What clients keep may be large, and a message is limited.
TEST_F(RankZeroTest, WorkIsDealtInMessagesOfLimitedSize) {
  const Experiment experiment = load();
  ClientStates states(folder_ / "states", 11);
  for (uint32_t client = 0; client < 11; ++client) states.put(client, Bytes(100, 7));
  std::vector<size_t> sizes;
  ThreadRanks ranks(2);
  ranks.run(
      [&](Communicator& zero) {
        RankTransportOptions options{.stop = [] { return true; }, .hosts = {"a", "b"}, .threads = {0, 11}};
        options.work_bytes = 250;
        make_rank_transport(zero, options, experiment, states, [](const Event&) {
        })->run_round(0, {1, 2, 3}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, [](const ClientResult&) {});
        zero.send(1, plain_message(MessageKind::kEnd));
      },
      [&](Communicator& one) {
        for (;;) {
          const auto message = one.poll();
          if (message && kind_of(message->bytes) == MessageKind::kEnd) return;
          if (message && kind_of(message->bytes) == MessageKind::kWork)
            sizes.push_back(read_work(message->bytes).size());
        }
      });
  EXPECT_THAT(sizes, testing::ElementsAre(3, 3, 3, 2));
}

TEST_F(RankZeroTest, AJobThatFailsEndsTheOthers) {
  ThreadRanks ranks(3);
  WorkerOptions other = worker();
  other.run_alone = [&](uint32_t job, const std::function<bool()>& stop) {
    if (job == 1) throw input_error("no data");
    while (!stop()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    throw Error(Error::Kind::kStopped, "stopped");
  };
  EXPECT_THAT(error_text([&] {
                ranks.run(
                    [&](Communicator& zero) {
                      RankZero(zero, own(0))
                          .run_alone(
                              {0, 1}, {}, [](uint32_t, int) {}, [](uint32_t) {});
                    },
                    [&](Communicator& one) { run_worker(one, other); });
              }),
              HasSubstr("no data"));
}

}  // namespace
}  // namespace bitfed
