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
#include "bitfed/rpc/security/openssl.h"
#include "bitfed/rpc/server/listener.h"
#include "bitfed/rpc/server/outbox.h"
#include "bitfed_operator_v1.grpc.pb.h"
#include "bitfed_v1.grpc.pb.h"

namespace bitfed {
namespace {

using v1::FromClient;
using v1::FromServer;

constexpr size_t kMaxLine = 4096;                      // of an operator
constexpr int64_t kWarnSeconds = int64_t{30} * 86400;  // before a certificate expires

grpc::Status status_of(Ending ending, const std::string& text) {
  switch (ending) {
    case Ending::kDone:
      return grpc::Status::OK;
    case Ending::kRefused:
      return {grpc::StatusCode::PERMISSION_DENIED, text};
    case Ending::kNotNow:
      return {grpc::StatusCode::FAILED_PRECONDITION, text};
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

  void begin(const CertificateCheck::Answer& identity) {
    if (!certificate_.empty())
      expires_ = std::chrono::system_clock::now() + std::chrono::seconds(identity.seconds_left);
    coordinator_.opened(*this, identity.name, context_.peer(), identity.part);
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
    // A write fails where the connection is gone; the read fails too.
    if (!good) outbox_.clear();
    write_next();
  }

  void OnDone() override {
    coordinator_.closed(*this, !context_.IsCancelled());
    delete this;
  }

  void send(const FromServer& message) override { send(message, nullptr); }

  void send(const FromServer& head, std::shared_ptr<const Bytes> bytes) override {
    const std::lock_guard lock(mutex_);
    if (!outbox_.push(head, std::move(bytes))) {
      cut();
      return;
    }
    write_next();
  }

  void end(Ending ending, const std::string& text) override {
    const std::lock_guard lock(mutex_);
    ending_ = status_of(ending, text);
    write_next();
  }

  void cut() override { context_.TryCancel(); }

  double stalled_seconds() const override {
    const std::lock_guard lock(mutex_);
    if (!writing_) return 0;
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - writing_since_).count();
  }

  std::optional<int64_t> certificate_seconds_left() const override {
    if (!expires_) return std::nullopt;
    return std::chrono::duration_cast<std::chrono::seconds>(*expires_ - std::chrono::system_clock::now())
        .count();
  }

 private:
  // With mutex_ held.
  void write_next() {
    if (writing_ || finished_) return;
    if (outbox_.empty()) {
      if (ending_) {
        finished_ = true;
        Finish(*ending_);
      }
      return;
    }
    current_ = outbox_.next();
    writing_ = true;
    writing_since_ = std::chrono::steady_clock::now();
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
  std::optional<std::chrono::system_clock::time_point> expires_;
  FromClient incoming_;

  mutable std::mutex mutex_;
  Outbox outbox_;
  FromServer current_;
  bool writing_ = false;
  std::chrono::steady_clock::time_point writing_since_;
  bool finished_ = false;
  std::optional<grpc::Status> ending_;
};

// Ends a stream before it has begun.
class Refusal : public grpc::ServerBidiReactor<FromClient, FromServer> {
 public:
  explicit Refusal(const grpc::Status& status) { Finish(status); }
  void OnDone() override { delete this; }
};

std::string certificate_of(const grpc::CallbackServerContext& context) {
  const auto found = context.auth_context()->FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME);
  return found.empty() ? "" : std::string(found[0].data(), found[0].size());
}

class Service : public v1::Federation::CallbackService {
 public:
  Service(Coordinator& coordinator, CertificateCheck* check, Listener& listener)
      : coordinator_(coordinator), check_(check), listener_(listener) {}

  grpc::ServerBidiReactor<FromClient, FromServer>* Session(grpc::CallbackServerContext* context) override {
    CertificateCheck::Answer identity;
    std::string certificate;
    if (check_ != nullptr) {
      certificate = certificate_of(*context);
      identity = check_->check(certificate);
      if (identity.is_operator && identity.standing == Standing::kWelcome) {
        identity.standing = Standing::kRevoked;
        identity.text = "an operator's certificate, which does not take part in rounds";
      }
      if (identity.standing != Standing::kWelcome) {
        coordinator_.refused(identity.name, context->peer(), identity.text);
        const bool final = identity.standing == Standing::kRevoked;
        return new Refusal(status_of(final ? Ending::kRefused : Ending::kNotNow, identity.text));
      }
    }
    listener_.authenticated(context->peer());
    if (check_ != nullptr && identity.seconds_left < kWarnSeconds) {
      coordinator_.warn(identity.name, fmt::format("the certificate of '{}' expires in {} days",
                                                   identity.name, identity.seconds_left / 86400));
    }
    auto* session = new bitfed::Session(coordinator_, *context, certificate);
    session->begin(identity);
    return session;
  }

 private:
  Coordinator& coordinator_;
  CertificateCheck* check_;
  Listener& listener_;
};

// `bitfed admin` from another machine.
class OperatorService : public v1::Operator::CallbackService {
 public:
  OperatorService(Coordinator& coordinator, CertificateCheck* check, Listener& listener,
                  AnswerOperator answer)
      : coordinator_(coordinator), check_(check), listener_(listener), answer_(std::move(answer)) {}

  grpc::ServerUnaryReactor* Ask(grpc::CallbackServerContext* context, const v1::Question* question,
                                v1::Reply* reply) override {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(answer(*context, question->line(), reply));
    return reactor;
  }

 private:
  grpc::Status answer(const grpc::CallbackServerContext& context, const std::string& line, v1::Reply* reply) {
    if (check_ == nullptr)
      return {grpc::StatusCode::PERMISSION_DENIED, "operators need TLS; without it, use the local socket"};
    const CertificateCheck::Answer identity = check_->check(certificate_of(context));
    if (identity.standing != Standing::kWelcome) {
      coordinator_.refused(identity.name, context.peer(), identity.text);
      return {grpc::StatusCode::PERMISSION_DENIED, identity.text};
    }
    if (!identity.is_operator) {
      const std::string text = "expected an operator's certificate";
      if (!coordinator_.asked_as_operator(identity.name, context.peer(), text))
        return status_of(Ending::kBusy, "too many messages: come back later");
      return status_of(Ending::kRefused, text);
    }
    listener_.authenticated(context.peer());
    if (line.size() > kMaxLine || line.find_first_of("\r\n") != std::string::npos)
      return {grpc::StatusCode::INVALID_ARGUMENT,
              fmt::format("expected one line of at most {} bytes", kMaxLine)};
    try {
      reply->set_text(answer_(line, identity.name));
    } catch (const std::exception& error) {
      return {grpc::StatusCode::INVALID_ARGUMENT, error.what()};
    }
    return grpc::Status::OK;
  }

  Coordinator& coordinator_;
  CertificateCheck* check_;
  Listener& listener_;
  AnswerOperator answer_;
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
  Server(const std::string& listen, const ServerTrust& trust, Coordinator& coordinator,
         AnswerOperator answer_operator)
      : coordinator_(coordinator),
        handshakes_(coordinator),
        check_(trust.plaintext ? nullptr : std::make_unique<CertificateCheck>(trust)),
        listener_(trust.plaintext ? require_loopback(listen) : listen, {}),
        service_(coordinator, check_.get(), listener_),
        operators_(coordinator, check_.get(), listener_, std::move(answer_operator)),
        certificate_(trust.certificate) {
    grpc::ServerBuilder builder;
    auto acceptor = builder.experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, server_credentials(trust));
    builder.RegisterService(&service_);
    builder.RegisterService(&operators_);
    builder.SetMaxReceiveMessageSize(static_cast<int>(kMaxMessageBytes));
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
    server_ = builder.BuildAndStart();
    if (server_ == nullptr) throw failure("gRPC: the server does not start");
    listener_.start([acceptor = std::shared_ptr(std::move(acceptor))](int handle) {
      grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
      connection.fd = handle;
      acceptor->HandleNewConnection(&connection);
    });
    sweeper_ = std::thread([this] { sweep(); });
  }

  ~Server() override {
    listener_.stop();
    stopping_ = true;
    sweeper_.join();
    coordinator_.stop();
    server_->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(2));
    server_->Wait();
  }

  uint16_t port() const override { return listener_.port(); }

 private:
  // Every connection's certificate is checked when the lists have changed, and once a minute: it may have
  // expired.
  void sweep() {
    std::string version;
    for (int second = 0; !stopping_; ++second) {
      bool look = false;
      if (check_ != nullptr) {
        const std::string now = check_->version();
        look = now != std::exchange(version, now) || second % 60 == 0;
      }
      NetworkStatus network = network_;
      if (look) network.first_client_certificate_seconds.reset();
      coordinator_.sweep([&](const Peer& peer) {
        if (!look) return Standing::kWelcome;
        const auto answer = check_->check(dynamic_cast<const Session&>(peer).certificate());
        std::optional<int64_t>& first = network.first_client_certificate_seconds;
        first = std::min(first.value_or(answer.seconds_left), answer.seconds_left);
        return answer.standing;
      });
      if (check_ != nullptr && second % 60 == 0)
        network.server_certificate_seconds = certificate_seconds_left(certificate_);
      network.evicted = listener_.evicted();
      network.turned_away = listener_.turned_away();
      coordinator_.set_network(network);
      network_ = network;
      if (second % 86400 == 0 && network.server_certificate_seconds.value_or(INT64_MAX) < kWarnSeconds) {
        coordinator_.warn(fmt::format("{}: expires in {} days; issue a new one with `bitfed certs server`",
                                      certificate_.string(), *network.server_certificate_seconds / 86400));
      }
      if (check_ != nullptr) {
        for (const std::string& text : check_->take_complaints()) coordinator_.warn(text);
      }
      for (int i = 0; i < 10 && !stopping_; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }

  Coordinator& coordinator_;
  HandshakeLog handshakes_;
  std::unique_ptr<CertificateCheck> check_;
  Listener listener_;
  Service service_;
  OperatorService operators_;
  std::unique_ptr<grpc::Server> server_;
  std::filesystem::path certificate_;
  NetworkStatus network_;
  std::atomic<bool> stopping_ = false;
  std::thread sweeper_;
};

}  // namespace

std::unique_ptr<GrpcServer> make_grpc_server(const std::string& listen, const ServerTrust& trust,
                                             Coordinator& coordinator, AnswerOperator answer_operator) {
  return std::make_unique<Server>(listen, trust, coordinator, std::move(answer_operator));
}

}  // namespace bitfed
