#pragma once

#include <atomic>
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
#include <span>
#include <string>
#include <vector>

#include "bitfed/data/dataset.h"
#include "bitfed/federated/experiment.h"
#include "bitfed/federated/transport.h"
#include "bitfed/rpc/protocol.h"
#include "bitfed/rpc/security/trust.h"
#include "bitfed/rpc/server/allowance.h"
#include "bitfed/rpc/server/federation_store.h"
#include "bitfed/run/events.h"
#include "bitfed/secure/protocol/identity.h"
#include "bitfed/secure/protocol/secure_server.h"

namespace bitfed::v1 {
class FromClient;
class FromServer;
class Hello;
class Offer;
class Failed;
class Secure;
}  // namespace bitfed::v1

namespace bitfed {

// Why a connection is ended. Clients do not come back after kRefused and kReplaced, and come back later after
// the others.
enum class Ending {
  kDone,
  kRefused,    // revoked, another protocol, another federation: trying again does not help
  kNotNow,     // not on the list, expired, its part is taken: an operator may change that
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
  // How long the message that is being written has not gone out.
  virtual double stalled_seconds() const { return 0; }
  // Until the client's certificate expires; none without TLS.
  virtual std::optional<int64_t> certificate_seconds_left() const { return std::nullopt; }
};

struct CoordinatorOptions {
  uint32_t clients = 1;
  RoundPolicy policy;
  PrivacyRecipe privacy;
  std::string recipe;  // as resolved
  uint64_t seed = 0;
  Dataset prototype;
  uint64_t max_update_bytes = uint64_t{64} << 20;
  uint64_t raw_upload_bytes = 0;                   // of the model, uncoded, where the method knows it
  uint64_t max_waiting_bytes = uint64_t{1} << 30;  // of all updates that are on their way in
  AllowanceOptions allowance;                      // of messages, for every client
  AllowanceOptions log_allowance = {.max = 100, .per_second = 0.2};  // of lines in the log about every client
  double hello_seconds = 30;         // a connection that has said nothing by then is cut
  double max_away_seconds = 86400;   // a round waits so long for a client that is not connected
  double max_stall_seconds = 600;    // a connection whose client reads nothing for so long is cut
  double silence_seconds = 60;       // so is an update that does not go on,
  double min_bytes_per_second = 16;  // or comes slower than this: half of a radio of 300 bit/s
  std::function<bool()> stop;
  // Checks the keys of secure aggregation as clients do; none: nobody is known by a certificate.
  std::shared_ptr<const Identity> identity;
  // Passes on a client's request for a new certificate, see RenewalMailbox::ask; none without TLS.
  std::function<std::string(const std::string& name, const std::string& request)> renew;
  // The clock of deadlines, silences and allowances; tests pass their own.
  std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
};

// What the transport knows and the coordinator does not.
struct NetworkStatus {
  uint64_t evicted = 0;      // connections that had not authenticated, for newer ones
  uint64_t turned_away = 0;  // for lack of file descriptors
  std::optional<int64_t> server_certificate_seconds;        // until it expires
  std::optional<int64_t> first_client_certificate_seconds;  // the first to expire of connected clients
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
    std::optional<int64_t> certificate_seconds;  // until its certificate expires
    int64_t last_round = -1;  // that an update of it was accepted in since this process began
  };
  std::vector<Client> clients;
  size_t connections = 0;
  int64_t round = -1;          // -1: between rounds
  size_t wanted = 0;           // clients that the round waits for
  double waiting_seconds = 0;  // since anything went on: a round, an update, a client that came
  uint64_t waiting_bytes = 0;  // of updates on their way in
  size_t waiting_offers = 0;   // updates that wait for room
  size_t dropped = 0;          // clients that rounds do not wait for
  bool paused = false;
  NetworkStatus network;
  std::map<std::string, uint64_t> counts;
};

// The server's side of the protocol, without a network: which clients are connected, what a round waits for,
// which updates count. The handlers are called from any thread; Transport's methods from the federation's.
class Coordinator : public Transport {
 public:
  Coordinator(CoordinatorOptions options, FederationStore& store, EventSink events);
  ~Coordinator() override;

  // A connection has come. `name` is the certificate's, empty without TLS; `address` is for the log; `part`
  // is reserved for the name by the list of allowed clients.
  void opened(Peer& peer, const std::string& name, const std::string& address,
              std::optional<uint32_t> part = std::nullopt);
  // A connection was refused for its certificate. `name` is empty where the certificate has none.
  void refused(const std::string& name, const std::string& address, const std::string& text);
  // A client has asked for what only an operator may; it counts as a message. False: it has none left.
  bool asked_as_operator(const std::string& name, const std::string& address, const std::string& text);
  // One did not get so far: no certificate, a foreign or expired one, noise.
  void handshake_failed(const std::string& text);
  void received(Peer& peer, const v1::FromClient& message);
  // `cleanly`: the client has said that it is done.
  void closed(Peer& peer, bool cleanly);

  // To be called every second or so: cuts connections that are silent and those whose certificate is no
  // longer accepted, and lets a round that waits look at the clock.
  void sweep(const std::function<Standing(const Peer&)>& standing_of);

  // An operator's acts. A dropped client leaves the round under way and is not waited for until it comes
  // back; a freed part can be taken by another name. Each is durable when it returns; an input_error for a
  // name or part that is not known.
  void drop(const std::string& name);
  void free_part(uint32_t part);
  RoundPolicy policy() const;
  void set_policy(const RoundPolicy& policy);
  void pause(bool paused);  // no round begins while it is, also after a restart
  void end_after_round();   // as if the user stopped it between two rounds

  // Logs something that an operator should see; about a client, as often as its lines may come.
  void warn(const std::string& text);
  void warn(const std::string& name, const std::string& text);

  std::vector<uint32_t> present(uint32_t round, uint32_t clients) override;
  void run_round(uint32_t round, const Bytes& broadcast, const std::vector<uint32_t>& clients,
                 const std::function<void(ClientResult)>& receive) override;

  bool can_mask() const override { return true; }
  void begin_sum(uint32_t round, uint32_t attempt, const std::vector<uint32_t>& clients,
                 const std::string& broadcast_sha256) override;
  Opening open_sum(uint32_t round, const std::vector<uint32_t>& answered,
                   const std::vector<ModularField>& fields) override;

  // Hands the result to every client that is or becomes connected, until all known clients have it or
  // `seconds` have passed.
  void hand_out(uint32_t rounds, Bytes model, double seconds);
  // Ends all connections.
  void stop();

  CoordinatorStatus status() const;
  // Whether sweep() still comes through: without waiting for any lock.
  bool is_alive() const;
  void set_network(const NetworkStatus& network);

 private:
  using Clock = std::chrono::steady_clock;
  double seconds_since(Clock::time_point begin) const {
    return std::chrono::duration<double>(options_.now() - begin).count();
  }

  struct Connection {
    uint64_t id = 0;
    std::string name;
    std::string opened_as;  // the certificate's name; without TLS empty, whatever `name` is said to be
    std::string address;
    std::optional<uint32_t> part;    // reserved for the name
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
    SecureServer::Channels channels;  // of others, whose certificates it has checked
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
    std::string offered_for;    // what offers must name: the broadcast's digest, or the session of masks
    std::set<uint32_t> wanted;  // neither answered nor given up
    size_t answered = 0;
  };

  void hello(Peer& peer, Connection& connection, const v1::Hello& message);
  void offered(Peer& peer, Connection& connection, std::string_view update = {});
  void arrived(Connection& connection, std::string_view bytes);
  void judge_waiting_offers();
  void failed(Connection& connection, const v1::Failed& message);
  void secure(Connection& connection, const v1::Secure& message);
  bool agree_on_masks(std::unique_lock<std::mutex>& lock);
  void wait_for_phase(std::unique_lock<std::mutex>& lock, const std::function<bool()>& is_done);
  void hand_sum(Peer& peer, const Connection& connection);
  void hand_sums();
  bool work_has_keys() const;
  void take_next_keys(const Connection& connection, const std::string& bytes);
  Bytes checked_keys(const Connection& connection, std::span<const uint8_t> bytes, const char* what);
  void complained(const Connection& connection, uint32_t about);
  void judge_complaints(uint32_t round);
  void blame(const std::vector<SecureServer::Fault>& faults);
  void leave_out(uint32_t client, uint32_t from_round);
  std::set<uint32_t> left_out(uint32_t round) const;
  bool is_undecided(uint32_t round) const;
  void decide(int kind, const std::string& reason);
  void renew(Peer& peer, const Connection& connection, const std::string& request);
  void check_not_restored(const Connection& connection, const v1::Hello& message);
  void hand_work(Peer& peer, const Connection& connection);
  void hand_result(Peer& peer, Connection& connection);
  void end(Peer& peer, Connection& connection, Ending ending, const std::string& text);
  void verdict(Peer& peer, const v1::Offer& offer, int kind, const std::string& reason);
  void release(Connection& connection);
  size_t active_count() const;
  bool is_registered(const std::string& name) const;
  void leave_place(const Connection& connection);
  uint32_t register_client(const Connection& connection, const v1::Hello& message);
  void drop(uint32_t number, const std::string& why);
  void drop_those_away();
  void forget(uint32_t part);
  void cut_unwelcome(Peer& peer, Connection& connection, Standing standing);
  size_t needed(size_t left_out) const;
  void fault(const std::string& kind, const Connection& connection, const std::string& text);
  void log(const std::string& name, auto event);
  void take(std::deque<Arrival> arrivals, const std::function<void(ClientResult)>& receive,
            std::unique_lock<std::mutex>& lock);
  void discard_arrivals();
  bool is_over(size_t chosen, Clock::time_point begin) const;
  void check_failure();
  size_t ready_count(const std::set<uint32_t>& left_out = {}) const;
  bool is_too_slow(const Connection& connection) const;
  uint64_t max_update_bytes() const;
  bool room_is_short() const;
  void cut_slow(Peer& peer, Connection& connection);
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
  struct Sum {
    uint32_t round = 0;
    uint32_t attempt = 0;
    std::string session;  // hexadecimal
    SecureServer server;
  };
  std::optional<Sum> sum_;  // of the round's updates, where they are masked
  struct NextKeys {
    Bytes keys;
    Clock::time_point since;
  };
  std::map<uint32_t, NextKeys> next_keys_;  // that clients have sent for a sum still to begin
  std::map<uint32_t, PublicKey> channels_;  // that clients have sent last
  struct Complaint {
    uint32_t of = 0;
    uint32_t about = 0;
  };
  std::vector<Complaint> complaints_;  // about shares, in the round of the last sum,
  uint32_t complaints_round_ = 0;      // which is this one
  struct LeftOut {
    uint32_t times = 0;
    uint32_t until = 0;  // the last round
  };
  std::map<uint32_t, LeftOut> left_out_;  // for sums that they may have kept from being opened
  std::set<uint32_t> owing_;              // clients that send theirs with the answer that they owe
  struct Undecided {
    uint64_t connection = 0;
    std::unique_ptr<v1::Offer> offer;
  };
  std::vector<Undecided> undecided_;  // updates of the sum whose clients wait for a verdict, or the opening
  int64_t decided_ = -1;              // the newest round of which it was decided who is in the sum
  std::shared_ptr<const Bytes> result_;
  std::string result_sha256_;
  uint32_t result_rounds_ = 0;
  std::set<uint32_t> have_result_;
  std::map<uint32_t, int64_t> last_round_;
  std::map<std::string, uint64_t> counts_;
  bool paused_ = false;
  bool ends_after_round_ = false;
  NetworkStatus network_;
  Clock::time_point last_progress_;
  std::atomic<Clock::time_point> last_sweep_;
  std::set<uint32_t> dropped_;
  std::map<uint32_t, Clock::time_point>
      away_since_;                               // clients that a round may wait for and are not connected
  std::map<uint32_t, std::string> names_;        // of all clients that were ever registered
  std::map<std::string, size_t> places_;         // connections by name
  std::map<std::string, Allowance> allowances_;  // by name, kept across connections; full ones are removed
  struct LogLines {
    Allowance allowance;
    uint64_t left_out = 0;  // since the last line that was written
  };
  std::map<std::string, LogLines> log_lines_;  // by name, likewise
  std::exception_ptr failure_;                 // of a handler: ends the federation
};

}  // namespace bitfed
