#include "bitfed/rpc/server/grpc_server.h"

#include <fmt/format.h>
#include <grpc/support/log.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <mutex>
#include <string_view>
#include <thread>

#include "bitfed/base/error.h"
#include "bitfed/rpc/security/credentials.h"
#include "bitfed_v1.grpc.pb.h"

namespace bitfed {
namespace {

using v1::FromClient;
using v1::FromServer;

grpc::Status status_of(Ending ending, const std::string& text) {
  switch (ending) {
    case Ending::kDone:
      return grpc::Status::OK;
    case Ending::kRefused:
      return {grpc::StatusCode::PERMISSION_DENIED, text};
    case Ending::kReplaced:
      return {grpc::StatusCode::ABORTED, text};
    case Ending::kViolation:
      return {grpc::StatusCode::INVALID_ARGUMENT, text};
    case Ending::kBusy:
      return {grpc::StatusCode::RESOURCE_EXHAUSTED, text};
    case Ending::kStopping:
      return {grpc::StatusCode::UNAVAILABLE, text};
  }
  return {grpc::StatusCode::UNKNOWN, text};
}

// One stream. There is always a read under way, and at most one write; it deletes itself when gRPC is done.
class Session : public grpc::ServerBidiReactor<FromClient, FromServer>, public Peer {
 public:
  Session(Coordinator& coordinator, grpc::CallbackServerContext& context, std::string certificate)
      : coordinator_(coordinator), context_(context), certificate_(std::move(certificate)) {}

  void begin(const std::string& name) {
    coordinator_.opened(*this, name, context_.peer());
    StartRead(&incoming_);
  }

  const std::string& certificate() const { return certificate_; }

  void OnReadDone(bool good) override {
    if (!good) {
      finish(grpc::Status::OK);
      return;
    }
    coordinator_.received(*this, incoming_);
    incoming_.Clear();
    const std::lock_guard lock(mutex_);
    if (!finished_) StartRead(&incoming_);
  }

  void OnWriteDone(bool good) override {
    const std::lock_guard lock(mutex_);
    writing_ = false;
    // A write fails where the connection is gone; the read will say so too.
    if (!good) outgoing_.clear();
    write_next();
  }

  void OnDone() override {
    coordinator_.closed(*this, !context_.IsCancelled());
    delete this;
  }

  void send(const FromServer& message) override { send(message, nullptr); }

  void send(const FromServer& head, std::shared_ptr<const Bytes> bytes) override {
    const std::lock_guard lock(mutex_);
    outgoing_.push_back({head, std::move(bytes)});
    write_next();
  }

  void end(Ending ending, const std::string& text) override {
    const std::lock_guard lock(mutex_);
    ending_ = status_of(ending, text);
    write_next();
  }

  void cut() override { context_.TryCancel(); }

 private:
  struct Item {
    FromServer head;
    std::shared_ptr<const Bytes> bytes;  // after the head, in chunks; may be none
    bool head_sent = false;
    size_t sent = 0;
  };

  // With mutex_ held.
  void write_next() {
    if (writing_ || finished_) return;
    if (outgoing_.empty()) {
      if (ending_) {
        finished_ = true;
        Finish(*ending_);
      }
      return;
    }
    Item& item = outgoing_.front();
    if (!std::exchange(item.head_sent, true)) {
      current_ = std::move(item.head);
    } else {
      const size_t size = std::min(kChunkBytes, item.bytes->size() - item.sent);
      current_.set_chunk(item.bytes->data() + item.sent, size);
      item.sent += size;
    }
    if (item.bytes == nullptr || item.sent == item.bytes->size()) outgoing_.pop_front();
    writing_ = true;
    StartWrite(&current_);
  }

  void finish(const grpc::Status& status) {
    const std::lock_guard lock(mutex_);
    if (std::exchange(finished_, true)) return;
    Finish(ending_.value_or(status));
  }

  Coordinator& coordinator_;
  grpc::CallbackServerContext& context_;
  std::string certificate_;  // PEM; empty without TLS
  FromClient incoming_;

  std::mutex mutex_;
  std::deque<Item> outgoing_;
  FromServer current_;
  bool writing_ = false;
  bool finished_ = false;
  std::optional<grpc::Status> ending_;
};

// Ends a stream before it has begun.
class Refusal : public grpc::ServerBidiReactor<FromClient, FromServer> {
 public:
  explicit Refusal(const grpc::Status& status) { Finish(status); }
  void OnDone() override { delete this; }
};

class Service : public v1::Federation::CallbackService {
 public:
  Service(Coordinator& coordinator, CertificateCheck* check) : coordinator_(coordinator), check_(check) {}

  grpc::ServerBidiReactor<FromClient, FromServer>* Session(grpc::CallbackServerContext* context) override {
    std::string name;
    std::string certificate;
    if (check_ != nullptr) {
      const auto found = context->auth_context()->FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME);
      if (!found.empty()) certificate = std::string(found[0].data(), found[0].size());
      try {
        name = check_->name_of(certificate);
      } catch (const Error& error) {
        coordinator_.refused(context->peer(), error.what());
        return new Refusal({grpc::StatusCode::PERMISSION_DENIED, error.what()});
      }
    }
    auto* session = new bitfed::Session(coordinator_, *context, certificate);
    session->begin(name);
    return session;
  }

 private:
  Coordinator& coordinator_;
  CertificateCheck* check_;
};

// gRPC tells of handshakes that fail in its own log and nowhere else, without the address: from there to
// ours. That log is one for the whole process.
class HandshakeLog {
 public:
  explicit HandshakeLog(Coordinator& coordinator) {
    const std::lock_guard lock(mutex);
    hearer = &coordinator;
    gpr_set_log_function(hear);
  }
  ~HandshakeLog() {
    const std::lock_guard lock(mutex);
    hearer = nullptr;
  }
  HandshakeLog(const HandshakeLog&) = delete;
  HandshakeLog& operator=(const HandshakeLog&) = delete;

 private:
  static void hear(gpr_log_func_args* line) {
    const std::string_view text = line->message;
    if (!text.starts_with("Handshake failed")) {
      // Of connections that were still shaking hands when the server ended there may be thousands.
      const bool ending = text.find("Listener stopped serving") != std::string_view::npos;
      if (line->severity == GPR_LOG_SEVERITY_ERROR && !ending) fmt::print(stderr, "gRPC: {}\n", text);
      return;
    }
    const std::lock_guard lock(mutex);
    if (hearer != nullptr) hearer->handshake_failed("TLS: " + std::string(text));
  }

  static inline std::mutex mutex;
  static inline Coordinator* hearer = nullptr;
};

class Server : public GrpcServer {
 public:
  Server(const std::string& listen, const ServerTrust& trust, Coordinator& coordinator)
      : coordinator_(coordinator),
        handshakes_(coordinator),
        check_(trust.plaintext ? nullptr : std::make_unique<CertificateCheck>(trust)),
        service_(coordinator, check_.get()) {
    if (trust.plaintext) require_loopback(listen);
    grpc::ServerBuilder builder;
    builder.AddListeningPort(listen, server_credentials(trust), &port_);
    builder.RegisterService(&service_);
    builder.SetMaxReceiveMessageSize(static_cast<int>(kMostMessageBytes));
    // Pings find connections whose other end has gone without a word.
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 20000);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10000);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 0);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5000);
    // Connections that open no stream, or do not get as far as that.
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, 30000);
    builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, 30000);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, 4);
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr || port_ == 0)
      throw input_error("{}: cannot be listened on: no such address, or the port is taken", listen);
    sweeper_ = std::thread([this] { sweep(); });
  }

  ~Server() override {
    stopping_ = true;
    sweeper_.join();
    coordinator_.stop();
    server_->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(2));
    server_->Wait();
  }

  uint16_t port() const override { return static_cast<uint16_t>(port_); }

 private:
  // Everybody's certificate is looked at when the lists have changed, and once a minute: it may have ended.
  void sweep() {
    std::string version;
    for (int second = 1; !stopping_; ++second) {
      bool look = false;
      if (check_ != nullptr) {
        const std::string now = check_->version();
        look = now != std::exchange(version, now) || second % 60 == 0;
      }
      coordinator_.sweep([&](const Peer& peer) {
        return !look || check_->is_welcome(dynamic_cast<const Session&>(peer).certificate());
      });
      for (int i = 0; i < 10 && !stopping_; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }

  Coordinator& coordinator_;
  HandshakeLog handshakes_;
  std::unique_ptr<CertificateCheck> check_;
  Service service_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  std::atomic<bool> stopping_ = false;
  std::thread sweeper_;
};

}  // namespace

std::unique_ptr<GrpcServer> make_grpc_server(const std::string& listen, const ServerTrust& trust,
                                             Coordinator& coordinator) {
  return std::make_unique<Server>(listen, trust, coordinator);
}

}  // namespace bitfed
