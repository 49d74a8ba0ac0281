// Many devices in one process, for the server's sake: connects as clients FIRST to END - 1, and answers every
// round with the update that it was given, which one real client made. No training, no state.
//   federation_load HOST:PORT FIRST END UPDATE.safetensors [CERTS]
// CERTS is a folder of `bitfed certs`: over mutual TLS, each device with a certificate of its own. Without it
// plaintext, so loopback.

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "benchmarks/load_certificates.h"
#include "bitfed/base/byte_io.h"
#include "bitfed/base/hash/digest.h"
#include "bitfed/rpc/protocol.h"
#include "bitfed/rpc/security/credentials.h"
#include "bitfed_v1.grpc.pb.h"

namespace {

using bitfed::v1::FromClient;
using bitfed::v1::FromServer;
using bitfed::v1::Verdict;

constexpr size_t kMostAtOnce = 100;  // devices that have not been welcomed yet

struct Load {
  bitfed::Bytes update;
  std::string sha256;
  std::atomic<size_t> welcome = 0;
  std::atomic<size_t> accepted = 0;
  std::atomic<size_t> over = 0;
  std::atomic<size_t> failed = 0;
};

class Device : public grpc::ClientBidiReactor<FromClient, FromServer> {
 public:
  Device(bitfed::v1::Federation::Stub& stub, Load& load, uint32_t number) : load_(load) {
    stub.async()->Session(&context_, this);
    FromClient hello;
    hello.mutable_hello()->set_least_protocol(bitfed::kMinProtocol);
    hello.mutable_hello()->set_most_protocol(bitfed::kMaxProtocol);
    hello.mutable_hello()->set_name(fmt::format("load-{}", number));
    hello.mutable_hello()->set_part(number);
    send(hello);
    StartRead(&incoming_);
    StartCall();
  }

  void OnReadDone(bool good) override {
    if (!good) return;
    if (incoming_.has_welcome()) {
      ++load_.welcome;
      FromClient ready;
      ready.mutable_ready()->set_samples(1);
      send(ready);
    } else if (incoming_.has_work()) {
      offer(incoming_.work());
    } else if (incoming_.has_verdict()) {
      settle(incoming_.verdict());
    } else if (incoming_.has_result()) {
      left_ = incoming_.result().size();
    } else if (incoming_.message_case() == FromServer::kChunk && left_ > 0) {
      left_ -= std::min<uint64_t>(left_, incoming_.chunk().size());
      if (left_ == 0) StartWritesDone();
    }
    StartRead(&incoming_);
  }

  void OnWriteDone(bool good) override {
    const std::lock_guard lock(mutex_);
    outgoing_.pop_front();
    if (good && !outgoing_.empty()) StartWrite(&outgoing_.front());
  }

  void OnDone(const grpc::Status& status) override {
    if (!status.ok() && load_.failed++ == 0)
      fmt::print(stderr, "a device ended: {}\n", status.error_message());
    ++load_.over;
  }

 private:
  void send(const FromClient& message) {
    const std::lock_guard lock(mutex_);
    outgoing_.push_back(message);
    if (outgoing_.size() == 1) StartWrite(&outgoing_.front());
  }

  void offer(const bitfed::v1::Work& work) {
    FromClient message;
    message.mutable_offer()->set_round(work.round());
    message.mutable_offer()->set_broadcast_sha256(work.sha256());
    message.mutable_offer()->set_size(load_.update.size());
    message.mutable_offer()->set_sha256(load_.sha256);
    message.mutable_offer()->set_samples(1);
    send(message);
  }

  void settle(const Verdict& verdict) {
    if (verdict.kind() == Verdict::ACCEPTED) ++load_.accepted;
    if (verdict.kind() == Verdict::REFUSED && load_.failed++ == 0)
      fmt::print(stderr, "refused: {}\n", verdict.reason());
    if (verdict.kind() != Verdict::WANTED) return;
    for (size_t sent = 0; sent < load_.update.size(); sent += bitfed::kChunkBytes) {
      FromClient chunk;
      chunk.set_chunk(load_.update.data() + sent, std::min(bitfed::kChunkBytes, load_.update.size() - sent));
      send(chunk);
    }
  }

  Load& load_;
  grpc::ClientContext context_;
  FromServer incoming_;
  std::mutex mutex_;
  std::deque<FromClient> outgoing_;
  uint64_t left_ = 0;  // bytes of the result that are still to come
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5 && argc != 6) {
    fmt::print(stderr, "usage: federation_load HOST:PORT FIRST END UPDATE.safetensors [CERTS]\n");
    return 2;
  }
  const auto first = static_cast<uint32_t>(std::stoul(argv[2]));
  const uint32_t clients = static_cast<uint32_t>(std::stoul(argv[3])) - first;
  Load load;
  load.update = bitfed::read_file(argv[4]);
  load.sha256 = bitfed::sha256_hex(load.update);
  std::vector<bitfed::ClientTrust> trusts(clients);
  for (uint32_t i = 0; i < clients; ++i) {
    if (argc == 6) {
      trusts[i] = bitfed::load_certificate(argv[5], first + i);
    } else {
      trusts[i].plaintext = true;
    }
  }
  fmt::print("connecting\n");
  std::fflush(stdout);
  std::vector<std::unique_ptr<bitfed::v1::Federation::Stub>> stubs;
  std::vector<std::unique_ptr<Device>> devices;
  for (uint32_t i = 0; i < clients; ++i) {
    // One process must not be slower than thousands of devices would be, each with a processor of its own.
    while (i - load.welcome > kMostAtOnce && load.failed == 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a connection each, as devices have
    stubs.push_back(bitfed::v1::Federation::NewStub(
        grpc::CreateCustomChannel(argv[1], bitfed::client_credentials(trusts[i]), arguments)));
    devices.push_back(std::make_unique<Device>(*stubs.back(), load, first + i));
  }
  while (load.over < clients) {
    fmt::print(stderr, "{} welcome, {} updates accepted, {} over\n", load.welcome.load(),
               load.accepted.load(), load.over.load());
    std::this_thread::sleep_for(std::chrono::seconds(2));
  }
  fmt::print("{} updates accepted, {} failures\n", load.accepted.load(), load.failed.load());
  return load.failed == 0 ? 0 : 1;
}
