#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "bitfed/data/dataset.h"
#include "bitfed/federated/experiment.h"
#include "bitfed/federated/transport.h"
#include "bitfed/rpc/protocol.h"
#include "bitfed/rpc/server/allowance.h"
#include "bitfed/rpc/server/federation_store.h"
#include "bitfed/run/events.h"

namespace bitfed::v1 {
class FromClient;
class FromServer;
class Hello;
class Offer;
class Failed;
}  // namespace bitfed::v1

namespace bitfed {

// Why a connection is ended; a client that hears kRefused or kReplaced does not come back.
enum class Ending {
  kDone,
  kRefused,    // the certificate, the version, the number: trying again does not help
  kReplaced,   // another connection has come with the same name
  kViolation,  // what came does not follow the protocol
  kBusy,       // too many connections, or messages
  kStopping,   // the server stops; it will be back
};

// One connection as the coordinator sees it. Calls return at once; nothing of it calls the coordinator back
// on the same thread.
class Peer {
 public:
  virtual ~Peer() = default;
  virtual void send(const v1::FromServer& message) = 0;
  // `head`, then the bytes in chunks.
  virtual void send(const v1::FromServer& head, std::shared_ptr<const Bytes> bytes) = 0;
  // After what was sent so far.
  virtual void end(Ending ending, const std::string& text) = 0;
  // At once, for a client that may not be reading.
  virtual void cut() = 0;
};

struct CoordinatorOptions {
  uint32_t clients = 1;
  RoundPolicy policy;
  std::string recipe;  // as resolved
  uint64_t seed = 0;
  Dataset prototype;
  uint64_t most_update_bytes = uint64_t{64} << 20;
  uint64_t most_waiting_bytes = uint64_t{1} << 30;  // of all updates that are on their way in
  AllowanceOptions allowance;                       // of every client
  double hello_seconds = 30;                        // a connection that has said nothing by then is cut
  double silence_seconds = 60;                      // so is an update that does not go on,
  double least_bytes_a_second = 16;                 // or comes slower than this: half of a radio of 300 bit/s
  std::function<bool()> stop;
};

// What the live page and /metrics show.
struct CoordinatorStatus {
  struct Client {
    uint32_t number = 0;
    std::string name;
    bool connected = false;
    bool ready = false;
    uint64_t samples = 0;
    std::string peer;
    int64_t last_round = -1;  // that an update of it was accepted in since this process began
  };
  std::vector<Client> clients;
  size_t connections = 0;
  int64_t round = -1;  // -1: between rounds
  size_t wanted = 0;   // clients that the round waits for
  std::map<std::string, uint64_t> counts;
};

// The server's side of the protocol, without a network: who is there, what a round waits for, what counts.
// The handlers are called from any thread; Transport's methods from the federation's.
class Coordinator : public Transport {
 public:
  Coordinator(CoordinatorOptions options, FederationStore& store, EventSink events);
  ~Coordinator() override;

  // A connection has come. `name` is the certificate's, empty without TLS; `address` is for the log.
  void opened(Peer& peer, const std::string& name, const std::string& address);
  // One has come and gone: its certificate was not welcome.
  void refused(const std::string& address, const std::string& text);
  // One did not get so far: no certificate, a foreign or expired one, noise.
  void handshake_failed(const std::string& text);
  void received(Peer& peer, const v1::FromClient& message);
  // `cleanly`: the client has said that it is done.
  void closed(Peer& peer, bool cleanly);

  // Cuts connections that say nothing, and those whose name `is_welcome` denies.
  void sweep(const std::function<bool(const Peer&)>& is_welcome);

  std::vector<uint32_t> present(uint32_t round, uint32_t clients) override;
  void run_round(uint32_t round, const Bytes& broadcast, const std::vector<uint32_t>& clients,
                 const std::function<void(ClientResult)>& receive) override;

  // Hands the result to everybody who is there or comes, until all known clients have it or `seconds` passed.
  void hand_out(uint32_t rounds, Bytes model, double seconds);
  // Ends all connections.
  void stop();

  CoordinatorStatus status() const;

 private:
  using Clock = std::chrono::steady_clock;
  static double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }

  struct Connection {
    uint64_t id = 0;
    std::string name;
    std::string address;
    std::optional<uint32_t> number;  // once welcomed
    bool ready = false;
    bool ending = false;
    uint64_t samples = 0;
    Clock::time_point last_heard;
    std::unique_ptr<v1::Offer> offer;  // waits for its verdict, or for its bytes
    std::optional<Incoming> incoming;
    Clock::time_point incoming_since;
    uint64_t free_chunks = 0;  // that the update may still come in at no expense
    bool told_result = false;
  };
  struct Arrival {
    uint64_t connection = 0;
    uint32_t client = 0;
    std::unique_ptr<v1::Offer> offer;
    Incoming incoming;
  };
  struct Round {
    uint32_t round = 0;
    std::shared_ptr<const Bytes> broadcast;
    std::string sha256;
    std::set<uint32_t> wanted;  // neither answered nor given up
    size_t answered = 0;
  };

  void hello(Peer& peer, Connection& connection, const v1::Hello& message);
  void offered(Peer& peer, Connection& connection);
  void judge_waiting_offers();
  void failed(Connection& connection, const v1::Failed& message);
  void hand_work(Peer& peer, const Connection& connection);
  void hand_result(Peer& peer, Connection& connection);
  void end(Peer& peer, Connection& connection, Ending ending, const std::string& text);
  void verdict(Peer& peer, const v1::Offer& offer, int kind, const std::string& reason);
  void release(Connection& connection);
  void fault(const std::string& kind, const Connection& connection, const std::string& text);
  void take(std::deque<Arrival> arrivals, const std::function<void(ClientResult)>& receive,
            std::unique_lock<std::mutex>& lock);
  void discard_arrivals();
  bool is_over(size_t chosen, Clock::time_point begin) const;
  void check_failure();
  size_t ready_count() const;
  bool is_too_slow(const Connection& connection) const;
  bool may_speak(Peer& peer, Connection& connection);
  Allowance& allowance_of(const std::string& name);
  void guard(Peer& peer, const std::function<void()>& body);

  CoordinatorOptions options_;
  FederationStore& store_;
  EventSink events_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::map<Peer*, Connection> connections_;
  std::map<uint32_t, Peer*> by_number_;
  uint64_t next_id_ = 0;
  uint64_t waiting_bytes_ = 0;
  std::deque<Arrival> arrivals_;
  std::optional<Round> current_;
  std::shared_ptr<const Bytes> result_;
  std::string result_sha256_;
  uint32_t result_rounds_ = 0;
  std::set<uint32_t> have_result_;
  std::map<uint32_t, int64_t> last_round_;
  std::map<std::string, uint64_t> counts_;
  std::map<std::string, Allowance> allowances_;  // by name: coming anew makes none; those that are not full
  std::exception_ptr failure_;                   // of a handler: ends the federation
};

}  // namespace bitfed
