// What a client says in a round, in any order and shape: the input is a row of messages, each after its
// length in two bytes. Whatever they are, another client's update counts, once, and the round ends.

#include <stdlib.h>

#include <filesystem>
#include <memory>
#include <thread>

#include "bitfed/base/error.h"
#include "bitfed/base/hash/digest.h"
#include "bitfed/rpc/server/coordinator.h"
#include "bitfed_v1.pb.h"

using bitfed::v1::FromClient;

namespace {

struct SilentPeer : bitfed::Peer {
  void send(const bitfed::v1::FromServer& /*message*/) override {}
  void send(const bitfed::v1::FromServer& /*head*/, std::shared_ptr<const bitfed::Bytes> /*bytes*/) override {
  }
  void end(bitfed::Ending /*ending*/, const std::string& /*text*/) override {}
  void cut() override {}
};

const bitfed::Bytes kBroadcast = {1, 2, 3};
const std::string kUpdate = "update";

FromClient hello(uint32_t part) {
  FromClient message;
  message.mutable_hello()->set_least_protocol(1);
  message.mutable_hello()->set_most_protocol(1);
  message.mutable_hello()->set_part(part);
  return message;
}

void must(bool holds) {
  if (!holds) std::abort();
}

// One for all inputs, each of which is a round.
bitfed::FederationStore& shared_store() {
  static const std::filesystem::path folder = [] {
    std::string pattern = std::filesystem::temp_directory_path() / "bitfed-fuzz-XXXXXX";
    must(mkdtemp(pattern.data()) != nullptr);
    return pattern;
  }();
  static bitfed::FederationStore store(folder / "federation.sqlite");
  static const bool once = [] {
    store.register_client("bob", 0, 2);
    store.register_client("ann", 1, 2);
    return std::atexit([] { std::filesystem::remove_all(folder); }) == 0;
  }();
  must(once);
  return store;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static uint32_t round = 0;
  ++round;
  bitfed::FederationStore& store = shared_store();
  bitfed::CoordinatorOptions options;
  options.clients = 2;
  options.prototype.columns = {"a"};
  options.prototype.class_names = {"x", "y"};
  options.max_update_bytes = 1000;
  options.max_waiting_bytes = 1500;
  bitfed::Coordinator coordinator(options, store, [](const bitfed::Event&) {});
  store.begin_round(round, {0, 1});
  int received[2] = {0, 0};
  std::thread federation([&] {
    coordinator.run_round(round, kBroadcast, {0, 1}, [&](const bitfed::ClientResult& result) {
      if (result.upload.size() > 500) throw bitfed::input_error("too much");
      store.put(round, result, "");
      ++received[result.client];
    });
  });
  while (coordinator.status().round < 0) std::this_thread::yield();

  SilentPeer hostile;
  coordinator.opened(hostile, "bob", "address");
  while (size >= 2) {
    const size_t length = std::min<size_t>(size - 2, data[0] + 256u * data[1]);
    FromClient message;
    if (message.ParseFromArray(data + 2, static_cast<int>(length))) {
      // So that the fuzzer need not guess which round it is, nor what was broadcast.
      if (message.has_offer() && message.offer().round() == 1) {
        message.mutable_offer()->set_round(round);
        message.mutable_offer()->set_broadcast_sha256(bitfed::sha256_hex(kBroadcast));
      }
      coordinator.received(hostile, message);
    }
    data += 2 + length;
    size -= 2 + length;
  }
  coordinator.closed(hostile, false);

  SilentPeer ann;
  coordinator.opened(ann, "ann", "address");
  coordinator.received(ann, hello(1));
  FromClient message;
  message.mutable_ready()->set_samples(1);
  coordinator.received(ann, message);
  bitfed::v1::Offer& offer = *message.mutable_offer();
  offer.set_round(round);
  offer.set_size(kUpdate.size());
  offer.set_sha256(bitfed::sha256_hex(std::string_view(kUpdate)));
  offer.set_broadcast_sha256(bitfed::sha256_hex(kBroadcast));
  coordinator.received(ann, message);
  message.set_chunk(kUpdate);
  coordinator.received(ann, message);

  SilentPeer bob;  // comes back and gives up, if he has not answered
  coordinator.opened(bob, "bob", "address");
  coordinator.received(bob, hello(0));
  message.mutable_failed()->set_round(round);
  coordinator.received(bob, message);
  federation.join();
  coordinator.closed(bob, true);
  coordinator.closed(ann, true);
  store.save(round, bitfed::State());
  must(received[1] == 1 && received[0] <= 1);
  must(store.accepted(round, 1) == bitfed::sha256_hex(std::string_view(kUpdate)));
  return 0;
}
