// Members of a federation that attack its server, each with a certificate and all at once:
//   hostile_members HOST:PORT CERTS FIRST COUNT SECONDS
// plays the devices load-FIRST and on. None of them ever sends an update that fits.

#include <arpa/inet.h>
#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <random>
#include <thread>

#include "benchmarks/load_certificates.h"
#include "bitfed/base/hash/digest.h"
#include "bitfed/rpc/protocol.h"
#include "bitfed/rpc/security/credentials.h"
#include "bitfed_operator_v1.grpc.pb.h"
#include "bitfed_v1.grpc.pb.h"

namespace {

using namespace bitfed;
using namespace std::chrono_literals;
using v1::FromClient;
using v1::FromServer;

using Clock = std::chrono::steady_clock;

std::atomic<uint64_t> attempts = 0;
std::atomic<uint64_t> messages = 0;

// One stream of a hostile member.
class Stream {
 public:
  Stream(const std::string& server, const ClientTrust& trust) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    channel_ = grpc::CreateCustomChannel(server, client_credentials(trust), arguments);
    stub_ = v1::Federation::NewStub(channel_);
    context_.set_deadline(std::chrono::system_clock::now() + 90s);
    stream_ = stub_->Session(&context_);
    ++attempts;
  }
  ~Stream() {
    context_.TryCancel();
    stream_->Finish();
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  bool send(const FromClient& message) {
    ++messages;
    return stream_->Write(message);
  }
  bool receive(FromServer* message) { return stream_->Read(message); }
  std::shared_ptr<grpc::Channel> channel() { return channel_; }

 private:
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Federation::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<FromClient, FromServer>> stream_;
};

FromClient hello(uint32_t part) {
  FromClient message;
  message.mutable_hello()->set_least_protocol(kMinProtocol);
  message.mutable_hello()->set_most_protocol(kMaxProtocol);
  message.mutable_hello()->set_part(part);
  return message;
}

FromClient ready() {
  FromClient message;
  message.mutable_ready()->set_samples(UINT64_MAX);
  return message;
}

struct Member {
  std::string server;
  ClientTrust trust;
  uint32_t part = 0;
  std::minstd_rand draw;
};

// Waits for work and offers an update; true where the server wants the bytes.
bool offer(Stream& stream, uint32_t part, uint64_t size, const std::string& sha256) {
  stream.send(hello(part));
  stream.send(ready());
  FromServer message;
  while (stream.receive(&message)) {
    if (message.has_work()) {
      FromClient offered;
      offered.mutable_offer()->set_round(message.work().round());
      offered.mutable_offer()->set_broadcast_sha256(message.work().sha256());
      offered.mutable_offer()->set_size(size);
      offered.mutable_offer()->set_sha256(sha256);
      offered.mutable_offer()->set_samples(UINT64_MAX);
      stream.send(offered);
    }
    if (message.has_verdict()) return message.verdict().kind() == v1::Verdict::WANTED;
  }
  return false;
}

void send_bytes(Stream& stream, const std::string& bytes) {
  FromClient message;
  for (size_t sent = 0; sent < bytes.size(); sent += kChunkBytes) {
    message.set_chunk(bytes.substr(sent, kChunkBytes));
    if (!stream.send(message)) return;
  }
}

// A safetensors file of `header`.
std::string file_of(const std::string& header) {
  std::string bytes(8, 0);
  for (size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(header.size() >> (8 * i));
  return bytes + header;
}

void silent_streams(Member& member) {
  const Stream first(member.server, member.trust);
  const Stream second(member.server, member.trust);
  const Stream third(member.server, member.trust);
  std::this_thread::sleep_for(5s);
}

void flood(Member& member) {
  Stream stream(member.server, member.trust);
  stream.send(hello(member.part));
  for (int i = 0; i < 5000 && stream.send(ready()); ++i) {
  }
}

void odd_strings(Member& member) {
  Stream stream(member.server, member.trust);
  FromClient message = hello(member.part);
  message.mutable_hello()->set_version(std::string(63, 'a') + "\u00e9");
  message.mutable_hello()->set_federation(std::string(900000, '\x1b'));
  stream.send(message);
  FromServer answer;
  stream.receive(&answer);
}

void failures(Member& member) {
  Stream stream(member.server, member.trust);
  stream.send(hello(member.part));
  stream.send(ready());
  FromClient message;
  message.mutable_failed()->set_reason(std::string(499, 'a') + "\U0001f600");
  for (uint32_t round = 0; round < 500; ++round) {
    message.mutable_failed()->set_round(round);
    if (!stream.send(message)) return;
  }
}

void nested_header(Member& member) {
  std::string header = "{\"a\":[{}";
  for (int i = 0; i < 8000; ++i) header += ",{}";
  const std::string update = file_of(header + "]}");
  Stream stream(member.server, member.trust);
  if (offer(stream, member.part, update.size(), sha256_hex(std::string_view(update))))
    send_bytes(stream, update);
}

void wrong_digest(Member& member) {
  Stream stream(member.server, member.trust);
  if (offer(stream, member.part, 20000, std::string(64, 'a'))) send_bytes(stream, std::string(20000, 'x'));
}

void drip(Member& member) {
  Stream stream(member.server, member.trust);
  if (!offer(stream, member.part, 60000, std::string(64, 'b'))) return;
  FromClient message;
  message.set_chunk("x");
  for (int i = 0; i < 100 && stream.send(message); ++i) std::this_thread::sleep_for(100ms);
}

void oversized(Member& member) {
  Stream stream(member.server, member.trust);
  offer(stream, member.part, uint64_t{64} << 20, std::string(64, 'c'));
}

void never_reads(Member& member) {
  Stream stream(member.server, member.trust);
  stream.send(hello(member.part));
  stream.send(ready());
  std::this_thread::sleep_for(20s);
}

void reconnects(Member& member) {
  for (int i = 0; i < 30; ++i) {
    Stream stream(member.server, member.trust);
    stream.send(hello(member.part));
  }
}

void asks_as_operator(Member& member) {
  Stream stream(member.server, member.trust);
  const auto stub = v1::Operator::NewStub(stream.channel());
  for (int i = 0; i < 50; ++i) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + 5s);
    v1::Question question;
    question.set_line("end");
    v1::Reply reply;
    stub->Ask(&context, question, &reply);
    ++messages;
  }
}

void asks_for_certificates(Member& member) {
  Stream stream(member.server, member.trust);
  stream.send(hello(member.part));
  FromClient message;
  message.set_renew(std::string(1000000, 'x'));
  stream.send(message);
  FromServer answer;
  while (stream.receive(&answer)) {
  }
}

// Without TLS: a connection that says nothing, or noise.
void noise(Member& member) {
  const size_t colon = member.server.rfind(':');
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(std::stoul(member.server.substr(colon + 1))));
  inet_pton(AF_INET, member.server.substr(0, colon).c_str(), &address.sin_addr);
  std::vector<int> handles;
  for (int i = 0; i < 40; ++i) {
    const int handle = ::socket(AF_INET, SOCK_STREAM, 0);
    ++attempts;
    if (::connect(handle, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 && i % 2 == 0)
      ::send(handle, "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL);
    handles.push_back(handle);
  }
  std::this_thread::sleep_for(3s);
  for (const int handle : handles) ::close(handle);
}

using Action = void (*)(Member&);
constexpr Action kActions[] = {
    silent_streams, flood,       odd_strings, failures, nested_header,    wrong_digest,         drip,
    oversized,      never_reads, reconnects,  noise,    asks_as_operator, asks_for_certificates};

void attack(Member member, Clock::time_point until) {
  while (Clock::now() < until) {
    kActions[member.draw() % std::size(kActions)](member);
    std::this_thread::sleep_for(20ms);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    fmt::print(stderr, "usage: hostile_members HOST:PORT CERTS FIRST COUNT SECONDS\n");
    return 2;
  }
  const auto first = static_cast<uint32_t>(std::stoul(argv[3]));
  const auto count = static_cast<uint32_t>(std::stoul(argv[4]));
  const auto until = Clock::now() + std::chrono::seconds(std::stoul(argv[5]));
  std::vector<std::thread> threads;
  for (uint32_t part = first; part < first + count; ++part)
    threads.emplace_back(
        attack, Member{argv[1], load_certificate(argv[2], part), part, std::minstd_rand(part + 1)}, until);
  for (std::thread& thread : threads) thread.join();
  fmt::print("{} connections, {} messages\n", attempts.load(), messages.load());
  return 0;
}
