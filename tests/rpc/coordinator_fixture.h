#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>

#include "bitfed/base/error.h"
#include "bitfed/base/hash/digest.h"
#include "bitfed/rpc/server/coordinator.h"
#include "bitfed_v1.pb.h"
#include "tests/base/temporary_folder.h"

namespace bitfed {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using v1::FromClient;
using v1::FromServer;
using v1::Verdict;

inline constexpr auto kPatience = std::chrono::seconds(20);  // real time that a test waits for a thread

// Records what the coordinator sends to one client.
class FakePeer : public Peer {
 public:
  void send(const FromServer& message) override { send(message, nullptr); }
  void send(const FromServer& head, std::shared_ptr<const Bytes> bytes) override {
    const std::lock_guard lock(mutex_);
    messages_.push_back(head);
    if (bytes != nullptr) broadcast_ = *bytes;
    wake_.notify_all();
  }
  void end(Ending ending, const std::string& text) override {
    const std::lock_guard lock(mutex_);
    ending_ = ending;
    text_ = text;
    wake_.notify_all();
  }
  void cut() override {
    const std::lock_guard lock(mutex_);
    cut_ = true;
  }

  double stalled_seconds() const override { return stalled_; }
  void stall(double seconds) { stalled_ = seconds; }

  // Waits for the next message.
  FromServer next() {
    std::unique_lock lock(mutex_);
    if (!wake_.wait_for(lock, kPatience, [&] { return read_ < messages_.size(); })) {
      ADD_FAILURE() << "no message: " << text_;
      return {};
    }
    return messages_[read_++];
  }
  bool nothing_more() {
    std::unique_lock lock(mutex_);
    return read_ == messages_.size();
  }
  std::optional<Ending> ending() {
    const std::lock_guard lock(mutex_);
    return ending_;
  }
  std::string text() {
    const std::lock_guard lock(mutex_);
    return text_;
  }
  bool was_cut() {
    const std::lock_guard lock(mutex_);
    return cut_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<FromServer> messages_;
  size_t read_ = 0;
  Bytes broadcast_;
  std::optional<Ending> ending_;
  std::string text_;
  bool cut_ = false;
  std::atomic<double> stalled_ = 0;
};

inline Bytes bytes_of(const std::string& text) {
  return {text.begin(), text.end()};
}

// What the event says about lines that were left out.
inline uint64_t left_out(const auto& event) {
  if constexpr (requires { event.left_out; }) return event.left_out.value_or(0);
  return 0;
}

// Yields until `holds`; fails the test after kPatience.
inline void wait_until(const std::function<bool()>& holds) {
  const auto give_up = std::chrono::steady_clock::now() + kPatience;
  while (!holds()) {
    ASSERT_LT(std::chrono::steady_clock::now(), give_up);
    std::this_thread::yield();
  }
}

// A coordinator with up to three clients. Its clock stands still unless the test lets time pass.
class CoordinatorTest : public testing::Test {
 protected:
  CoordinatorTest() {
    options_.clients = 3;
    options_.policy.minimum_clients = 1;
    options_.recipe = "recipe";
    options_.seed = 5;
    options_.prototype.columns = {"a"};
    options_.prototype.class_names = {"x", "y"};
    options_.max_update_bytes = 100;
    options_.hello_seconds = 0.2;
    options_.silence_seconds = 0.2;
    options_.now = [this] {
      return std::chrono::steady_clock::time_point() + std::chrono::milliseconds(clock_milliseconds_);
    };
    options_.stop = [this] { return stop_.load(); };
  }
  ~CoordinatorTest() override {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }

  void start() {
    store_ = std::make_unique<FederationStore>(folder_ / "federation.sqlite");
    coordinator_ = std::make_unique<Coordinator>(options_, *store_, [this](const Event& event) {
      // As the log does; throws for what is not UTF-8.
      longest_event_ = std::max(longest_event_, event_line(event, "").size());
      left_out_ = std::visit([](const auto& kind) { return left_out(kind); }, event);
      if (const auto* fault = std::get_if<ClientFault>(&event)) faults_.push_back(fault->kind);
      if (const auto* lost = std::get_if<ClientLost>(&event)) lost_.push_back(lost->client);
      if (std::holds_alternative<WaitingForClients>(event)) waiting_ = true;
    });
  }

  // Lets time pass, and the coordinator look at its clock.
  void pass(double seconds) {
    clock_milliseconds_ += static_cast<int64_t>(seconds * 1000);
    coordinator_->sweep([](const Peer&) { return Standing::kWelcome; });
  }

  static FromClient hello(std::optional<uint32_t> part) {
    FromClient message;
    message.mutable_hello()->set_least_protocol(1);
    message.mutable_hello()->set_most_protocol(1);
    if (part) message.mutable_hello()->set_part(*part);
    return message;
  }

  // A client that is there and ready.
  void connect(FakePeer& peer, const std::string& name, uint32_t part) {
    coordinator_->opened(peer, name, "address");
    coordinator_->received(peer, hello(part));
    ASSERT_EQ(peer.next().welcome().number(), part);
    FromClient ready;
    ready.mutable_ready()->set_samples(10);
    coordinator_->received(peer, ready);
  }

  // Begins a round on a thread of its own, as the federation would.
  void begin(uint32_t round, const std::vector<uint32_t>& clients) {
    if (thread_.joinable()) thread_.join();
    over_ = false;
    store_->begin_round(round, clients);
    thread_ = std::thread([this, round, clients] {
      coordinator_->run_round(round, bytes_of("broadcast"), clients, [&](const ClientResult& result) {
        if (result.upload == bytes_of("misfit")) throw input_error("it does not fit");
        store_->put(round, result, "");
        received_.push_back(result.client);
      });
      over_ = true;
    });
  }
  void finish_round(uint32_t round) {
    thread_.join();
    store_->save(round, State());
  }

  FromClient offer(uint32_t round, const std::string& update) {
    FromClient message;
    v1::Offer& made = *message.mutable_offer();
    made.set_round(round);
    made.set_broadcast_sha256(sha256_hex(std::string_view("broadcast")));
    made.set_size(update.size());
    made.set_sha256(sha256_hex(std::string_view(update)));
    return message;
  }
  void send_chunk(FakePeer& peer, const std::string& chunk) {
    FromClient message;
    message.set_chunk(chunk);
    coordinator_->received(peer, message);
  }
  Verdict verdict(FakePeer& peer, const FromClient& offered) {
    coordinator_->received(peer, offered);
    return peer.next().verdict();
  }
  // Work has come; answers it and returns the last verdict.
  Verdict answer(FakePeer& peer, uint32_t round, const std::string& update) {
    EXPECT_EQ(peer.next().work().round(), round);
    const Verdict first = verdict(peer, offer(round, update));
    if (first.kind() != Verdict::WANTED) return first;
    send_chunk(peer, update);
    return peer.next().verdict();
  }

  TemporaryFolder folder_;
  CoordinatorOptions options_;
  std::unique_ptr<FederationStore> store_;
  std::unique_ptr<Coordinator> coordinator_;
  std::vector<std::string> faults_;
  uint64_t left_out_ = 0;     // as the last event says
  size_t longest_event_ = 0;  // bytes of its line in the log
  std::vector<uint32_t> lost_;
  std::vector<uint32_t> received_;
  std::thread thread_;
  std::atomic<int64_t> clock_milliseconds_ = 1000000;
  std::atomic<bool> waiting_ = false;
  std::atomic<bool> over_ = false;
  std::atomic<bool> stop_ = false;
};

}  // namespace bitfed
