#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace bitfed {

// What happens in a run, one struct per kind of event. Each lists its fields once, in the order of
// events.jsonl (run/fields.h). A new kind is one struct here and its name in Event.

// The data is about to be read. Not logged: the run has no folder yet.
struct Loading {
  static constexpr const char* kKind = "loading";
  static void fields(auto& /*self*/, auto& /*field*/) {}
  bool operator==(const Loading&) const = default;
};

struct RunStarted {
  std::string name;
  std::string method;
  std::string dataset;
  std::string partition;
  uint32_t clients = 0;
  uint32_t clients_per_round = 0;
  uint32_t rounds = 0;
  uint64_t train_samples = 0;
  uint64_t test_samples = 0;
  std::optional<uint64_t> dropped_rows = {};                  // of a table, for empty cells
  std::optional<std::vector<std::string>> dropped_keys = {};  // of the recipe, made meaningless by --set
  // Of bitfed serve.
  std::optional<uint32_t> port = {};
  std::optional<uint32_t> http_port = {};
  std::optional<std::string> federation = {};

  static constexpr const char* kKind = "run-started";
  static void fields(auto& self, auto& field) {
    field("name", self.name);
    field("method", self.method);
    field("dataset", self.dataset);
    field("partition", self.partition);
    field("clients", self.clients);
    field("clients_per_round", self.clients_per_round);
    field("rounds", self.rounds);
    field("train_samples", self.train_samples);
    field("test_samples", self.test_samples);
    field.if_set("dropped_rows", self.dropped_rows);
    field.if_set("dropped_keys", self.dropped_keys);
    field.if_set("port", self.port);
    field.if_set("http_port", self.http_port);
    field.if_set("federation", self.federation);
  }
  bool operator==(const RunStarted&) const = default;
};

struct RoundStarted {
  uint32_t round = 0;  // 0: the preparation before the first round of training
  std::vector<uint32_t> clients = {};
  uint64_t download_bytes = 0;  // per client

  static constexpr const char* kKind = "round-started";
  static void fields(auto& self, auto& field) {
    field("round", self.round);
    field("clients", self.clients);
    field("download_bytes", self.download_bytes);
  }
  bool operator==(const RoundStarted&) const = default;
};

// Frequent, and not logged.
struct ClientProgress {
  uint32_t round = 0;
  uint32_t client = 0;
  double fraction = 0;  // of the client's work, from 0 to 1

  static constexpr const char* kKind = "client-progress";
  static void fields(auto& self, auto& field) {
    field("round", self.round);
    field("client", self.client);
    field("fraction", self.fraction);
  }
  bool operator==(const ClientProgress&) const = default;
};

// Where an upload comes from.
enum class Origin {
  kTrained,     // a client sent it in this process
  kCheckpoint,  // stored by this run before it was interrupted
  kReused,      // taken from another run
};
constexpr std::array<const char*, 3> names_of(Origin /*type*/) {
  return {"trained", "checkpoint", "reused"};
}

struct ClientFinished {
  uint32_t round = 0;
  uint32_t client = 0;
  uint64_t samples = 0;
  uint64_t upload_bytes = 0;
  double seconds = 0;  // of CPU time
  Origin origin = Origin::kTrained;

  static constexpr const char* kKind = "client-finished";
  static void fields(auto& self, auto& field) {
    field("round", self.round);
    field("client", self.client);
    field("samples", self.samples);
    field("upload_bytes", self.upload_bytes);
    field("seconds", self.seconds);
    field("origin", self.origin);
  }
  bool operator==(const ClientFinished&) const = default;
};

// A chosen client did not answer in this round.
struct ClientLost {
  uint32_t round = 0;
  uint32_t client = 0;
  std::optional<std::string> text = {};  // why the round goes on without it; empty: the round ended first

  static constexpr const char* kKind = "client-lost";
  static void fields(auto& self, auto& field) {
    field("round", self.round);
    field("client", self.client);
    field.if_set("text", self.text);
  }
  bool operator==(const ClientLost&) const = default;
};

// A model's figures, fractions of one.
struct Scores {
  double accuracy = 0;                             // on test data
  std::optional<double> validation_accuracy = {};  // empty: no validation data
  double f1_micro = 0;
  std::optional<double> local_accuracy_mean = {};  // of the models that clients keep for themselves

  static void fields(auto& self, auto& field) {
    field("accuracy", self.accuracy);
    field("validation_accuracy", self.validation_accuracy);
    field("f1_micro", self.f1_micro);
    field("local_accuracy_mean", self.local_accuracy_mean);
  }
  bool operator==(const Scores&) const = default;
};

struct RoundFinished {
  uint32_t round = 0;
  uint64_t uploads = 0;
  uint64_t upload_bytes = 0;    // of all its clients
  uint64_t download_bytes = 0;  // of all its clients
  double aggregation_seconds = 0;
  // Of the model after the round; empty where it was not evaluated.
  std::optional<Scores> scores = {};
  std::optional<double> evaluation_seconds = {};
  // Of a simulation over several processes: those that trained, and the part of the round's time that they
  // trained for.
  std::optional<uint32_t> workers = {};
  std::optional<double> workers_busy = {};
  std::optional<uint64_t> received_bytes = {};  // from them: uploads or their sums, what clients keep

  static constexpr const char* kKind = "round-finished";
  static void fields(auto& self, auto& field) {
    field("round", self.round);
    field("uploads", self.uploads);
    field("upload_bytes", self.upload_bytes);
    field("download_bytes", self.download_bytes);
    field("aggregation_seconds", self.aggregation_seconds);
    field.spread("accuracy", self.scores);
    field.if_set("evaluation_seconds", self.evaluation_seconds);
    field.if_set("workers", self.workers);
    field.if_set("workers_busy", self.workers_busy);
    field.if_set("received_bytes", self.received_bytes);
  }
  bool operator==(const RoundFinished&) const = default;
};

struct RunFinished {
  std::optional<double> accuracy = {};
  std::string model_sha256 = {};

  static constexpr const char* kKind = "run-finished";
  static void fields(auto& self, auto& field) {
    field("accuracy", self.accuracy);
    field("model_sha256", self.model_sha256);
  }
  bool operator==(const RunFinished&) const = default;
};

// ---- bitfed serve ----

struct WaitingForClients {
  uint32_t round = 0;
  uint64_t present = 0;
  uint64_t needed = 0;

  static constexpr const char* kKind = "waiting-for-clients";
  static void fields(auto& self, auto& field) {
    field("round", self.round);
    field("present", self.present);
    field("needed", self.needed);
  }
  bool operator==(const WaitingForClients&) const = default;
};

// The lines about one client are limited. In those that can be left out, `left_out` counts the ones that were
// since the line before; empty: none.

struct ClientConnected {
  uint32_t client = 0;
  std::string name = {};
  std::string peer = {};  // its address
  std::string version = {};
  std::optional<uint64_t> left_out = {};

  static constexpr const char* kKind = "client-connected";
  static void fields(auto& self, auto& field) {
    field("client", self.client);
    field("name", self.name);
    field("peer", self.peer);
    field("version", self.version);
    field.if_set("left_out", self.left_out);
  }
  bool operator==(const ClientConnected&) const = default;
};

struct ClientDisconnected {
  uint32_t client = 0;
  std::string name = {};
  std::string peer = {};
  std::optional<uint64_t> left_out = {};

  static constexpr const char* kKind = "client-disconnected";
  static void fields(auto& self, auto& field) {
    field("client", self.client);
    field("name", self.name);
    field("peer", self.peer);
    field.if_set("left_out", self.left_out);
  }
  bool operator==(const ClientDisconnected&) const = default;
};

// A connection, message or update that was not accepted.
struct ClientFault {
  std::string kind = {};                // "late", "rejected", "handshake", …
  std::optional<uint32_t> client = {};  // empty: not known
  std::string name = {};
  std::string peer = {};
  std::string text = {};
  std::optional<uint64_t> left_out = {};

  static constexpr const char* kKind = "client-fault";
  static void fields(auto& self, auto& field) {
    field("kind", self.kind);
    field("client", self.client);
    field("name", self.name);
    field("peer", self.peer);
    field("text", self.text);
    field.if_set("left_out", self.left_out);
  }
  bool operator==(const ClientFault&) const = default;
};

// Something that an operator should see; on the device, its user.
struct Warning {
  std::string text = {};
  std::optional<uint64_t> left_out = {};

  static constexpr const char* kKind = "warning";
  static void fields(auto& self, auto& field) {
    field("text", self.text);
    field.if_set("left_out", self.left_out);
  }
  bool operator==(const Warning&) const = default;
};

// ---- bitfed join, on the device; shown, not logged ----

struct DeviceConnecting {
  std::string server = {};

  static constexpr const char* kKind = "connecting";
  static void fields(auto& self, auto& field) { field("server", self.server); }
  bool operator==(const DeviceConnecting&) const = default;
};

struct DeviceDisconnected {
  std::string text = {};

  static constexpr const char* kKind = "disconnected";
  static void fields(auto& self, auto& field) { field("text", self.text); }
  bool operator==(const DeviceDisconnected&) const = default;
};

struct CertificateExpires {
  std::string file = {};
  int64_t days = 0;  // that are left; negative: it has expired

  static constexpr const char* kKind = "certificate-expires";
  static void fields(auto& self, auto& field) {
    field("file", self.file);
    field("days", self.days);
  }
  bool operator==(const CertificateExpires&) const = default;
};

struct DeviceJoined {
  std::string server = {};
  std::string federation = {};
  uint32_t client = 0;
  uint64_t samples = 0;

  static constexpr const char* kKind = "joined";
  static void fields(auto& self, auto& field) {
    field("server", self.server);
    field("federation", self.federation);
    field("client", self.client);
    field("samples", self.samples);
  }
  bool operator==(const DeviceJoined&) const = default;
};

struct WorkReceived {
  uint32_t round = 0;
  uint64_t download_bytes = 0;

  static constexpr const char* kKind = "work";
  static void fields(auto& self, auto& field) {
    field("round", self.round);
    field("download_bytes", self.download_bytes);
  }
  bool operator==(const WorkReceived&) const = default;
};

struct TrainingFailed {
  uint32_t round = 0;
  std::string text = {};

  static constexpr const char* kKind = "training-failed";
  static void fields(auto& self, auto& field) {
    field("round", self.round);
    field("text", self.text);
  }
  bool operator==(const TrainingFailed&) const = default;
};

struct UpdateSettled {
  uint32_t round = 0;
  std::string verdict = {};  // "accepted", "discarded" or "refused"
  uint64_t upload_bytes = 0;
  double seconds = 0;
  std::string text = {};  // the server's reason; empty: none

  static constexpr const char* kKind = "update-settled";
  static void fields(auto& self, auto& field) {
    field("round", self.round);
    field("verdict", self.verdict);
    field("upload_bytes", self.upload_bytes);
    field("seconds", self.seconds);
    field("text", self.text);
  }
  bool operator==(const UpdateSettled&) const = default;
};

struct ResultReceived {
  uint32_t rounds = 0;
  std::string model = {};  // the file

  static constexpr const char* kKind = "finished";
  static void fields(auto& self, auto& field) {
    field("rounds", self.rounds);
    field("model", self.model);
  }
  bool operator==(const ResultReceived&) const = default;
};

using Event = std::variant<Loading, RunStarted, RoundStarted, ClientProgress, ClientFinished, ClientLost,
                           RoundFinished, RunFinished, WaitingForClients, ClientConnected, ClientDisconnected,
                           ClientFault, Warning, DeviceConnecting, DeviceDisconnected, CertificateExpires,
                           DeviceJoined, WorkReceived, TrainingFailed, UpdateSettled, ResultReceived>;

// Receives events: the log, the progress bar, the live page. Called from one thread at a time.
using EventSink = std::function<void(const Event&)>;

const char* kind_of(const Event& event);  // "run-started"

// A line of events.jsonl, without its end. `time` is UTC; empty: none.
std::string event_line(const Event& event, const std::string& time);

// Reads such a line; `where` names it in errors. Nothing where the kind of event is not known, as in the log
// of another version.
std::optional<Event> parse_event(std::string_view line, const std::string& where);

}  // namespace bitfed
