#pragma once

#include <string>
#include <vector>

#include "bitfed/base/error.h"
#include "bitfed/federated/client_round.h"
#include "bitfed/federated/client_states.h"
#include "bitfed/federated/evaluation.h"

namespace bitfed {

// What ranks send each other: a byte for the kind, then fields in order, little endian. All ranks run the
// same program (Hello tells), so that the format has no versions; it is checked all the same.

enum class MessageKind : uint8_t {
  // From rank 0.
  kJob = 1,   // read an experiment, and answer kReady
  kRound,     // its number and its broadcast
  kWork,      // clients to train
  kEvaluate,  // the model, and the samples to predict
  kAlone,     // run a whole job, without the other ranks
  kEnd,       // nothing follows; answer kBye
  // To rank 0.
  kReady,
  kResults,
  kConfusion,
  kProgress,
  kFailed,
  kDone,  // with a job that was run alone
  kBye,   // nothing follows
  // From rank 0: no clients follow in this round. When yours are done, hand over what their uploads add up
  // to.
  kNoMore,
  kPart,  // such a sum, to the rank before this one, see parent_of
  // To rank 0, before all others.
  kHello,
};

MessageKind kind_of(const Bytes& message);

// kJob, kAlone, kDone: the job's number.
Bytes number_message(MessageKind kind, uint32_t number);
uint32_t read_number(const Bytes& message);

// kNoMore, kEnd, kBye.
Bytes plain_message(MessageKind kind);

// What all workers receive: with the message where it is small, else behind it by Communicator::broadcast.
struct Shared {
  Bytes bytes = {};
  uint64_t follows = 0;  // so many bytes
};
// What rank 0 sends of these bytes to so many workers.
Shared shared(const Bytes& bytes, size_t workers);

struct RoundStart {
  uint64_t number = 0;  // of all rounds that rank 0 has begun, those of other jobs included
  uint32_t round = 0;
  double sum_below = 0;  // workers add up the uploads of clients that trained for fewer seconds
  Shared broadcast = {};
};
Bytes round_message(const RoundStart& start);
RoundStart read_round(const Bytes& message);

// What uploads add up to, see ServerHalf::take_part. Workers add up theirs along a binary tree: each sends
// one part, when it has those of the two ranks behind it, and rank 0 receives one.
struct Part {
  uint64_t number = 0;  // of the round, see RoundStart
  State sum = {};
};
Bytes part_message(const Part& part);
Part read_part(const Bytes& message);
inline int parent_of(int rank) {
  return rank / 2;
}
inline int children_of(int rank, int ranks) {
  return (2 * rank < ranks ? 1 : 0) + (2 * rank + 1 < ranks ? 1 : 0);
}

struct Failure {
  Error::Kind kind = Error::Kind::kFailure;
  std::string text = {};
};
Bytes failed_message(const Failure& failure);
Failure read_failed(const Bytes& message);

// The failure that is being handled, in a catch block.
Failure current_failure();

// Who a rank is; all must run the same program.
struct Hello {
  std::string program = {};
  std::string host = {};
  uint32_t threads = 1;
  uint32_t processors = 1;  // that it may use
};
Bytes hello_message(const Hello& hello);
Hello read_hello(const Bytes& message);

// What a rank has read; all must have read the same.
struct Ready {
  std::string experiment = {};  // the recipe as resolved and what uploads depend on, the data included
  std::string device = {};      // see Experiment
  std::optional<Failure> failure = {};
};
Bytes ready_message(const Ready& ready);
Ready read_ready(const Bytes& message);

struct ClientTask {
  uint32_t client = 0;
  Bytes kept = {};  // what the client kept when it last took part; empty: nothing
};
Bytes work_message(const std::vector<ClientTask>& tasks);
std::vector<ClientTask> read_work(const Bytes& message);

struct TrainedClient {
  ClientResult result = {};
  Bytes kept = {};  // where result.keeps_state
  ClientStates::Judged judged = {};
};
struct Results {
  double busy_seconds = 0;  // that threads spent on them
  bool wants_more = false;  // the clients that are left will be done before an answer comes
  std::vector<TrainedClient> clients = {};
};
Bytes results_message(const Results& results);
Results read_results(const Bytes& message);

// A rank's part of the test and of the validation data.
struct EvaluationPart {
  uint64_t test_begin = 0, test_end = 0;
  uint64_t validation_begin = 0, validation_end = 0;
  bool operator==(const EvaluationPart&) const = default;
};
struct EvaluationTask {
  EvaluationPart part = {};
  Shared model = {};
};
Bytes evaluate_message(const EvaluationTask& task);
EvaluationTask read_evaluate(const Bytes& message);

struct Confusions {
  Confusion test = {};
  Confusion validation = {};
};
Bytes confusion_message(const Confusions& confusions);
Confusions read_confusion(const Bytes& message);

struct ClientFraction {
  uint32_t client = 0;
  double fraction = 0;
};
Bytes progress_message(const ClientFraction& progress);
ClientFraction read_progress(const Bytes& message);

}  // namespace bitfed
