#include "bitfed/rpc/grpc_connection.h"

#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "bitfed/base/error.h"
#include "bitfed/rpc/protocol.h"
#include "bitfed/rpc/security/credentials.h"
#include "bitfed/rpc/security/openssl.h"
#include "bitfed_v1.grpc.pb.h"

namespace bitfed {
namespace {

using v1::FromClient;
using v1::FromServer;

constexpr size_t kMaxWaiting = 64;  // messages read ahead; chunks among them

bool is_final(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::PERMISSION_DENIED:
    case grpc::StatusCode::UNAUTHENTICATED:
    case grpc::StatusCode::ABORTED:
    case grpc::StatusCode::UNIMPLEMENTED:
      return true;
    default:
      return false;
  }
}

class GrpcConnection : public Connection {
 public:
  GrpcConnection(const std::string& server, const ClientTrust& trust) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(static_cast<int>(kMaxMessageBytes));
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 20000);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10000);
    arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
    // Trying again is the client's business: one attempt a channel, and none that others wait for.
    arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    channel_ = grpc::CreateCustomChannel(server, client_credentials(trust), arguments);
    stub_ = v1::Federation::NewStub(channel_);
    stream_ = stub_->Session(&context_);
    reader_ = std::thread([this] { read(); });
  }

  ~GrpcConnection() override {
    context_.TryCancel();
    {
      const std::lock_guard lock(mutex_);
      abandoned_ = true;
    }
    wake_.notify_all();
    reader_.join();
  }

  bool send(const FromClient& message) override { return stream_->Write(message); }

  std::unique_ptr<FromServer> receive(std::chrono::milliseconds wait) override {
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, wait, [&] { return !messages_.empty() || status_; });
    if (messages_.empty()) return nullptr;
    auto message = std::move(messages_.front());
    messages_.pop_front();
    if (message->has_work()) --waiting_work_;
    wake_.notify_all();
    return message;
  }

  bool has_newer_work() const override {
    const std::lock_guard lock(mutex_);
    return waiting_work_ > 0;
  }

  std::optional<End> end() const override {
    const std::lock_guard lock(mutex_);
    if (!status_ || !messages_.empty()) return std::nullopt;
    if (status_->ok()) return End{"the server ended the connection", false};
    return End{status_->error_message(), is_final(status_->error_code()),
               status_->error_code() == grpc::StatusCode::FAILED_PRECONDITION};
  }

  void finish() override {
    stream_->WritesDone();
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, std::chrono::seconds(5), [&] { return status_.has_value(); });
  }

 private:
  void read() {
    auto message = std::make_unique<FromServer>();
    while (stream_->Read(message.get())) {
      std::unique_lock lock(mutex_);
      if (message->has_work()) ++waiting_work_;
      messages_.push_back(std::move(message));
      message = std::make_unique<FromServer>();
      wake_.notify_all();
      wake_.wait(lock, [&] { return messages_.size() < kMaxWaiting || abandoned_; });
    }
    const grpc::Status status = stream_->Finish();
    const std::lock_guard lock(mutex_);
    status_ = status;
    wake_.notify_all();
  }

  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Federation::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<FromClient, FromServer>> stream_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::unique_ptr<FromServer>> messages_;
  int waiting_work_ = 0;
  bool abandoned_ = false;
  std::optional<grpc::Status> status_;
  std::thread reader_;
};

}  // namespace

std::optional<int64_t> certificate_seconds_left(const ClientTrust& trust) {
  if (trust.plaintext) return std::nullopt;
  return certificate_seconds_left(trust.certificate);
}

std::unique_ptr<Connection> open_connection(const std::string& server, const ClientTrust& trust) {
  if (trust.plaintext) require_loopback(server);
  return std::make_unique<GrpcConnection>(server, trust);
}

}  // namespace bitfed
