// A device as it is, over TLS, with a server that does not keep to the protocol of secure aggregation.

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "bitfed/base/error.h"
#include "bitfed/base/hash/digest.h"
#include "bitfed/federated/method.h"
#include "bitfed/rpc/device/client.h"
#include "bitfed/rpc/device/client_store.h"
#include "bitfed/rpc/security/certificate_identity.h"
#include "bitfed/rpc/security/certificates.h"
#include "bitfed/secure/protocol/secure_client.h"
#include "bitfed/secure/protocol/secure_server.h"
#include "bitfed_v1.grpc.pb.h"
#include "tests/base/temporary_folder.h"

namespace bitfed {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using v1::FromClient;
using v1::FromServer;
using v1::Secure;
using v1::Verdict;

constexpr const char* kFederation = "federation";
constexpr const char* kSamples = "1,2,a\n2,-1,b\n0,1,a\n4,-2,b\n";
constexpr const char* kRecipe = R"([data]
[model]
name = "mlp"
hidden = [4]
[method]
name = "fed-bin-mlp"
scaling = "declared"
lower = [-3, -5]
upper = [6, 3]
[client]
epochs = 1
batch = 4
[privacy]
secure_aggregation = true
min_survivors = 2
max_clients = 3
clip = 1
noise_multiplier = 4
)";

// Hands each stream that is opened to whoever plays the server.
class Sessions : public v1::Federation::Service {
 public:
  using Stream = grpc::ServerReaderWriter<FromServer, FromClient>;

  grpc::Status Session(grpc::ServerContext* /*context*/, Stream* stream) override {
    std::unique_lock lock(mutex_);
    stream_ = stream;
    wake_.notify_all();
    wake_.wait(lock, [&] { return stream_ != stream; });
    return grpc::Status::OK;
  }
  Stream* wait() {
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, std::chrono::seconds(60), [&] { return stream_ != nullptr; });
    return stream_;
  }
  void end() {
    const std::lock_guard lock(mutex_);
    stream_ = nullptr;
    wake_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  Stream* stream_ = nullptr;
};

std::string text_of_file(const std::filesystem::path& file) {
  const Bytes bytes = read_file(file);
  return {bytes.begin(), bytes.end()};
}

std::string content(const Bytes& bytes) {
  return {bytes.begin(), bytes.end()};
}

Bytes bytes_of(const std::string& text) {
  return {text.begin(), text.end()};
}

// The device is client 0. Clients 1 and 2, of the same authority, are played here.
class HostileServerTest : public testing::Test {
 protected:
  HostileServerTest() {
    make_authority(folder_ / "certs", "ours", 10);
    issue_server(folder_ / "certs", {"localhost"}, 10);
    for (const char* name : {"device", "ann", "bob"}) issue_client(folder_ / "certs", name, 10);
    write_samples(kSamples);
    prototype_.columns = {"x", "y"};
    prototype_.class_names = {"a", "b"};
    const Config recipe = Config::parse(kRecipe, "recipe");
    const auto method = make_method(
        {.recipe = recipe, .prototype = prototype_, .clients = 3, .sampling = {3, 3}, .served = true});
    broadcast_ = encode(method->make_server()->broadcast(1));
    uint32_t number = 0;
    for (const char* name : {"ann", "bob"})
      channels_.push_back(std::make_shared<Channel>(random_secret(), kFederation, ++number,
                                                    make_certificate_identity(trust(name))));

    grpc::SslServerCredentialsOptions options(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
    options.pem_root_certs = text_of_file(folder_ / "certs/ca.pem");
    options.pem_key_cert_pairs.push_back(
        {text_of_file(folder_ / "certs/server.key"), text_of_file(folder_ / "certs/server.pem")});
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::SslServerCredentials(options), &port_);
    builder.RegisterService(&sessions_);
    server_ = builder.BuildAndStart();
  }
  ~HostileServerTest() override {
    stop_device();
    server_->Shutdown(std::chrono::system_clock::now());
  }

  void write_samples(const std::string& rows) const {
    write_file_atomically(folder_ / "own.csv", std::string_view("x,y,label\n" + rows));
  }

  ClientTrust trust(const std::string& name) const {
    const auto clients = folder_ / "certs" / "clients";
    return {folder_ / "certs/ca.pem", clients / (name + ".pem"), clients / (name + ".key")};
  }

  // Starts the device, with the state that it has, as far as it is ready for work.
  void start_device() {
    launch_device();
    // What it has finished it offers first.
    while (!next().has_ready()) {
      ASSERT_TRUE(message_.has_offer()) << message_.ShortDebugString();
      offered_ = message_.offer().sha256();
      send_verdict(Verdict::DISCARDED);
    }
    next_keys_ = bytes_of(message_.ready().next_keys());
  }
  // As far as it has the recipe.
  void launch_device() {
    stop_ = false;
    device_ = std::thread([this] {
      ClientOptions options;
      options.server = "localhost:" + std::to_string(port_);
      options.trust = trust("device");
      options.own.data = folder_ / "own.csv";
      options.state = folder_ / "state";
      options.masked = masked_;
      options.accept_privacy = accept_privacy_;
      options.stop = [this] { return stop_.load(); };
      try {
        run_federation_client(options, [this](const Event& event) {
          const std::lock_guard lock(mutex_);
          if (const auto* warning = std::get_if<Warning>(&event)) warnings_.push_back(warning->text);
          if (const auto* failed = std::get_if<TrainingFailed>(&event)) failures_.push_back(failed->text);
        });
      } catch (const Error& error) {
        if (error.kind() != Error::Kind::kStopped) refusal_ = error.what();
      }
    });
    stream_ = sessions_.wait();
    ASSERT_NE(stream_, nullptr);
    ASSERT_TRUE(next().has_hello());
    FromServer message;
    v1::Welcome& welcome = *message.mutable_welcome();
    welcome.set_protocol(1);
    welcome.set_federation(kFederation);
    welcome.set_recipe(recipe_);
    welcome.set_max_update_in_offer(max_update_in_offer_);
    for (const std::string& column : prototype_.columns) welcome.mutable_prototype()->add_columns(column);
    for (const std::string& name : prototype_.class_names) welcome.mutable_prototype()->add_class_names(name);
    stream_->Write(message);
  }
  void stop_device() {
    if (!device_.joinable()) return;
    stop_ = true;
    device_.join();
    sessions_.end();
    EXPECT_EQ(refusal_, "");
  }
  // What the device ends with.
  std::string refusal() {
    if (stream_->Read(&message_)) ADD_FAILURE() << "not refused: " << message_.ShortDebugString();
    stop_ = true;
    sessions_.end();
    device_.join();
    return std::exchange(refusal_, "");
  }

  // Empty: the device has gone away, or says nothing.
  const FromClient& next() {
    message_.Clear();
    EXPECT_TRUE(stream_->Read(&message_));
    return message_;
  }

  Digest session(uint32_t attempt) const {
    return session_of(kFederation, 1, attempt, sha256_hex(broadcast_));
  }
  void send_work(uint32_t attempt, const Bytes& keys = {}) {
    FromServer message;
    v1::Work& work = *message.mutable_work();
    work.set_round(1);
    work.set_size(broadcast_.size());
    work.set_sha256(sha256_hex(broadcast_));
    work.set_masked_attempt(attempt);
    work.set_keys(content(keys));
    stream_->Write(message);
    message.set_chunk(broadcast_.data(), broadcast_.size());
    stream_->Write(message);
  }
  void send_secure(Secure::Phase phase, uint32_t attempt, const Bytes& bytes) {
    FromServer message;
    Secure& secure = *message.mutable_secure();
    secure.set_phase(phase);
    secure.set_round(1);
    secure.set_attempt(attempt);
    secure.set_content(content(bytes));
    stream_->Write(message);
  }
  void send_verdict(Verdict::Kind kind) {
    FromServer message;
    message.mutable_verdict()->set_kind(kind);
    message.mutable_verdict()->set_round(1);
    message.mutable_verdict()->set_sha256(offered_);
    stream_->Write(message);
  }
  // Takes the update that the device offers, whole.
  std::string take_update() {
    const FromClient& message = next();
    EXPECT_TRUE(message.has_offer()) << message.ShortDebugString();
    offered_ = message.offer().sha256();
    const uint64_t size = message.offer().size();
    send_verdict(Verdict::WANTED);
    std::string bytes;
    while (bytes.size() < size) {
      const FromClient& chunk = next();
      if (chunk.chunk().empty()) break;
      bytes += chunk.chunk();
    }
    return bytes;
  }
  std::string reason() {
    const FromClient& message = next();
    EXPECT_TRUE(message.has_failed()) << message.ShortDebugString();
    return message.failed().reason();
  }

  // A session with the device and the two others, as far as all shares have been handed out.
  void agree(uint32_t attempt) {
    secure_ = std::make_unique<SecureServer>(session(attempt), std::vector<uint32_t>{0, 1, 2}, 2);
    others_.clear();
    for (uint32_t number : {1u, 2u}) {
      others_.push_back(std::make_unique<SecureClient>(ClientSession{session(attempt), random_secret()},
                                                       channels_[number - 1], 2));
      secure_->add_keys(number, others_.back()->keys());
    }
    send_work(attempt);
    secure_->add_keys(0, bytes_of(next().secure().content()));
    ASSERT_TRUE(secure_->end_keys());
    for (uint32_t number : {1u, 2u})
      secure_->add_shares(number, others_[number - 1]->shares_for(secure_->message_for(number)));
    send_secure(Secure::KEYS, attempt, secure_->message_for(0));
    secure_->add_shares(0, bytes_of(next().secure().content()));
    ASSERT_TRUE(secure_->end_shares());
    send_secure(Secure::SHARES, attempt, secure_->message_for(0));
  }

  TemporaryFolder folder_;
  std::string recipe_ = kRecipe;
  uint64_t max_update_in_offer_ = 0;
  Dataset prototype_;
  Bytes broadcast_;
  std::vector<std::shared_ptr<Channel>> channels_;  // of ann and bob
  Sessions sessions_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  Sessions::Stream* stream_ = nullptr;
  FromClient message_;
  std::string offered_;
  Bytes next_keys_;  // that the device sent when it was ready
  std::unique_ptr<SecureServer> secure_;
  std::vector<std::unique_ptr<SecureClient>> others_;
  std::atomic<bool> stop_ = false;
  std::thread device_;
  std::mutex mutex_;
  std::vector<std::string> warnings_;
  std::vector<std::string> failures_;
  bool masked_ = true;
  bool accept_privacy_ = false;
  std::string refusal_;
};

TEST_F(HostileServerTest, KeysOfAnotherRoundOrOfItsOwnAreRefused) {
  start_device();
  // Of an attempt in which the others take part in another: why the device refuses the list of keys that was
  // changed, or the shares that follow it. It has sent no update by then.
  const auto refusal = [&](uint32_t attempt, uint32_t of_others, const auto& change) {
    std::vector<SecureClient> others;
    for (const auto& channel : channels_)
      others.emplace_back(ClientSession{session(of_others), random_secret()}, channel, 2);
    send_work(attempt);
    KeyList list{{0, 1, 2}, {}};
    list.keys[0] = read_keys(bytes_of(next().secure().content()));
    for (const SecureClient& other : others) {
      const RoundKeys keys = read_keys(other.keys());
      list.keys[keys.number] = keys;
    }
    SealedShares shares;
    for (uint32_t number : {1u, 2u})
      shares[number] =
          read_sent(others[number - 1].shares_for(write_key_list(list))).by_receiver.at(0).sealed;
    change(&list);
    send_secure(Secure::KEYS, attempt, write_key_list(list));
    if (next().has_failed()) return message_.failed().reason();
    EXPECT_EQ(message_.secure().phase(), Secure::SHARES);
    send_secure(Secure::SHARES, attempt, write_sealed(shares));
    return reason();
  };
  const PublicKey servers = KeyPair(random_secret()).public_key();
  EXPECT_THAT(refusal(0, 7, [](KeyList*) {}), HasSubstr("those of client 1 cannot be opened: refused"));
  EXPECT_THAT(refusal(1, 1, [&](KeyList* list) { list->keys[2].secret = servers; }),
              HasSubstr("those of client 2 cannot be opened: refused"));
  EXPECT_THAT(refusal(2, 2, [&](KeyList* list) { list->keys[2].channel = servers; }),
              HasSubstr("client 2: the keys are not signed by 'bob': refused"));
}

// A recipe without room for the update makes the device fail, with an error that quotes a parameter: that
// stays in the device's own log.
TEST_F(HostileServerTest, AFailureGivesNothingOfTheUpdateAway) {
  recipe_ += "update_range = 0.000001\n";
  start_device();
  agree(0);
  EXPECT_EQ(reason(), "training failed; the device's own log says why");
  const std::lock_guard lock(mutex_);
  EXPECT_THAT(failures_, Contains(HasSubstr("found a parameter that changed by")));
}

// What a device has joined with it keeps to, also after a restart: masks, clip, noise.
TEST_F(HostileServerTest, AnotherPrivacyIsRefused) {
  masked_ = false;
  start_device();
  stop_device();
  recipe_ = std::string(kRecipe).replace(std::string(kRecipe).find("noise_multiplier = 4"), 20,
                                         "noise_multiplier = 1");
  launch_device();
  const std::string joined =
      "max_clients = 3, min_survivors = 2, noise_multiplier = 4, secure_aggregation = true }, with which this "
      "device has joined; start it with --accept-privacy";
  EXPECT_THAT(refusal(), AllOf(HasSubstr("[privacy]: found { clip = 1, max_clients = 3, min_survivors = 2, "
                                         "noise_multiplier = 1, secure_aggregation = true }"),
                               HasSubstr(joined)));
  recipe_ = std::string(kRecipe).substr(0, std::string(kRecipe).find("[privacy]"));
  launch_device();
  EXPECT_THAT(refusal(), HasSubstr("found {}, expected { clip = 1, " + joined));
  // However it is written.
  recipe_ += "[x]\n";
  recipe_.insert(0, "privacy.noise_multiplier = 1\nprivacy.clip = 1\n");
  launch_device();
  EXPECT_THAT(refusal(),
              HasSubstr("found { clip = 1, noise_multiplier = 1 }, expected { clip = 1, " + joined));
  accept_privacy_ = true;
  recipe_ = std::string(kRecipe).replace(std::string(kRecipe).find("noise_multiplier = 4"), 20,
                                         "noise_multiplier = 1");
  start_device();
  stop_device();
  accept_privacy_ = false;  // once is enough
  start_device();
  stop_device();
  recipe_ = kRecipe;
  launch_device();
  EXPECT_THAT(refusal(),
              HasSubstr("noise_multiplier = 1, secure_aggregation = true }, with which this device"));
}

// The secrets of a sum are erased when it was opened, and all keys when the result comes.
TEST_F(HostileServerTest, KeysAreErased) {
  const auto state = folder_ / "state";
  const auto copied = [&](const std::string& name) {
    std::filesystem::copy(state, folder_ / name);
    return std::make_unique<ClientStore>(folder_ / name / "client.sqlite");
  };
  const auto holds = [&](const Secret& secret) {
    for (const auto& file : std::filesystem::directory_iterator(state)) {
      const Bytes bytes = read_file(file.path());
      if (std::search(bytes.begin(), bytes.end(), secret.begin(), secret.end()) != bytes.end()) return true;
    }
    return false;
  };
  start_device();
  agree(0);
  take_update();
  const ClientSession session = copied("before")->sum()->session;
  EXPECT_NE(session.secret, Secret());
  EXPECT_TRUE(holds(session.secret));
  send_secure(Secure::OPENING, 0, write_numbers({0, 1, 2}));
  EXPECT_TRUE(next().has_secure());
  const auto next_keys = copied("opened")->next_keys();
  EXPECT_EQ(copied("opened-too")->sum()->session.secret, Secret());
  ASSERT_TRUE(next_keys);
  stop_device();
  start_device();  // the log is emptied
  EXPECT_FALSE(holds(session.secret));
  EXPECT_TRUE(holds(next_keys->secret));
  FromServer message;
  message.mutable_result()->set_rounds(1);
  message.mutable_result()->set_size(broadcast_.size());
  message.mutable_result()->set_sha256(sha256_hex(broadcast_));
  stream_->Write(message);
  message.set_chunk(broadcast_.data(), broadcast_.size());
  stream_->Write(message);
  FromClient last;
  while (stream_->Read(&last)) {
  }
  EXPECT_EQ(refusal(), "");
  for (const Secret& secret : {session.secret, session.channel, next_keys->secret, next_keys->channel})
    EXPECT_FALSE(holds(secret));
}

// A small update comes with its offer where the server's welcome allows it; if it is wanted all the same,
// again.
TEST_F(HostileServerTest, ASmallUpdateComesWithItsOffer) {
  max_update_in_offer_ = uint64_t{1} << 40;
  start_device();
  agree(0);
  const v1::Offer offer = next().offer();
  EXPECT_EQ(offer.update().size(), offer.size());
  EXPECT_EQ(sha256_hex(std::string_view(offer.update())), offer.sha256());
  offered_ = offer.sha256();
  send_verdict(Verdict::WANTED);
  EXPECT_EQ(next().chunk(), offer.update());
  stop_device();
  max_update_in_offer_ = offer.size() - 1;
  start_device();
  send_work(0);
  const FromClient& again = next();
  EXPECT_EQ(again.offer().sha256(), offer.sha256());
  EXPECT_EQ(again.offer().update(), "");
}

// Nor do figures about its samples come with a masked update.
TEST_F(HostileServerTest, FiguresOfTheSamplesStayOnTheDevice) {
  start_device();
  EXPECT_EQ(message_.ready().samples(), 0u);
  agree(0);
  const v1::Offer offer = next().offer();
  EXPECT_GT(offer.size(), 0u);
  EXPECT_EQ(offer.samples(), 0u);
  EXPECT_EQ(offer.trained_samples(), 0u);
  EXPECT_EQ(offer.train_seconds(), 0.0);
}

// However often the server asks for the update of a sum, it gets the same bytes: the same masks, and the same
// noise. Once the update was accepted, and what the device keeps has changed, it gets none.
TEST_F(HostileServerTest, OneUpdateOfASum) {
  start_device();
  agree(0);
  const std::string first = take_update();
  EXPECT_FALSE(first.empty());
  stop_device();  // as the server would like: the update was sent and is not settled
  start_device();
  EXPECT_EQ(offered_, sha256_hex(bytes_of(first)));
  send_work(0);
  EXPECT_EQ(take_update(), first);
  send_verdict(Verdict::DISCARDED);
  send_work(0);
  EXPECT_EQ(take_update(), first);
  send_verdict(Verdict::ACCEPTED);
  send_work(0);
  EXPECT_THAT(reason(), HasSubstr("round 1: this client's update of this sum was accepted: refused"));
}

// Nor does it get another one after the samples have changed: the masks of both would be the same.
TEST_F(HostileServerTest, NoSecondUpdateOfASumWithOtherSamples) {
  start_device();
  agree(0);
  const std::string first = take_update();
  stop_device();
  write_samples("1,2,a\n2,-1,b\n0,1,a\n4,-2,b\n5,3,a\n");
  start_device();
  EXPECT_EQ(offered_, sha256_hex(bytes_of(first)));
  send_work(0);
  EXPECT_THAT(reason(), HasSubstr("has sent another update for the same sum"));
  stop_device();
  write_samples(kSamples);
  start_device();
  send_work(0);
  EXPECT_EQ(take_update(), first);
}

TEST_F(HostileServerTest, OneOpeningOfARound) {
  start_device();
  agree(0);
  take_update();
  send_verdict(Verdict::ACCEPTED);
  send_secure(Secure::OPENING, 0, write_numbers({0, 1, 2}));
  const std::string opened = next().secure().content();
  EXPECT_EQ(read_opened(bytes_of(opened)).size(), 3u);
  send_secure(Secure::OPENING, 0, write_numbers({0, 1, 2}));
  EXPECT_EQ(next().secure().content(), opened);  // what was said may be said again
  stop_device();
  start_device();  // and remembers it
  send_secure(Secure::OPENING, 0, write_numbers({0, 1}));
  send_secure(Secure::OPENING, 0, write_numbers({0, 2}));
  send_secure(Secure::OPENING, 3, write_numbers({0, 1, 2}));  // of a sum that there was not
  send_work(4);                                               // another sum of the same round
  EXPECT_THAT(reason(), HasSubstr("this client has helped to open a sum of round 1: refused"));
  const std::lock_guard lock(mutex_);
  EXPECT_THAT(warnings_,
              Contains(HasSubstr("second, different list of survivors for the same sum: refused")).Times(2));
}

// That the sum is opened with the update in it settles the update, in one step with the answer.
TEST_F(HostileServerTest, TheOpeningIsAVerdict) {
  start_device();
  agree(0);
  take_update();
  send_secure(Secure::OPENING, 0, write_numbers({0, 1, 2}));
  EXPECT_EQ(read_opened(bytes_of(next().secure().content())).size(), 3u);
  const RoundKeys keys = read_keys(bytes_of(message_.secure().next_keys()));
  EXPECT_EQ(keys.number, 0u);
  EXPECT_NE(keys.secret, read_keys(next_keys_).secret);  // that one has had its sum
  stop_device();
  offered_.clear();
  start_device();
  EXPECT_EQ(offered_, "");  // it has nothing that waits for a verdict
  EXPECT_EQ(read_keys(next_keys_).secret, keys.secret);
  EXPECT_EQ(read_keys(next_keys_).channel, keys.channel);
  send_work(0);
  EXPECT_THAT(reason(), HasSubstr("round 1: this client's update of this sum was accepted: refused"));
}

// One that the device refuses settles nothing.
TEST_F(HostileServerTest, AnOpeningThatIsRefusedIsNoVerdict) {
  start_device();
  agree(0);
  const std::string update = take_update();
  send_secure(Secure::OPENING, 0, write_numbers({1, 2}));
  send_secure(Secure::OPENING, 0, write_numbers({0, 1, 5}));
  send_verdict(Verdict::DISCARDED);
  send_work(0);
  EXPECT_EQ(take_update(), update);
  const std::lock_guard lock(mutex_);
  EXPECT_THAT(warnings_, Contains(HasSubstr("this client 0 not among them: refused")));
  EXPECT_THAT(warnings_, Contains(HasSubstr("one that is not among the members: refused")));
}

// The server has decided, and a verdict of its own is not to come: the device asks for it before it goes on.
TEST_F(HostileServerTest, AfterAnOpeningThatIsRefusedTheVerdictIsAskedFor) {
  start_device();
  agree(0);
  take_update();
  send_secure(Secure::OPENING, 0, write_numbers({1, 2}));
  send_work(1);
  EXPECT_TRUE(next().has_offer()) << message_.ShortDebugString();
  EXPECT_EQ(message_.offer().sha256(), offered_);
  send_verdict(Verdict::DISCARDED);
  EXPECT_EQ(next().secure().phase(), Secure::KEYS);
}

// The certificates of keys that the device has checked since it connected may be left out of later lists, and
// no others.
TEST_F(HostileServerTest, CertificatesMayBeLeftOutOnce) {
  start_device();
  const auto list = [&](const Bytes& own) {
    KeyList keys{{0, 1, 2}, {{0, read_keys(own)}}};
    for (const auto& channel : channels_)
      keys.keys[channel->number()] = read_keys(keys_of(random_secret(), *channel));
    return keys;
  };
  const auto without = [](KeyList keys, std::initializer_list<uint32_t> clients) {
    for (const uint32_t client : clients) {
      keys.keys.at(client).certificate.clear();
      keys.keys.at(client).signature.clear();
    }
    return write_key_list(keys);
  };
  send_work(0, without(list(next_keys_), {2}));
  EXPECT_THAT(reason(), HasSubstr("client 2: expected a certificate: refused"));
  const KeyList first = list(next_keys_);
  send_work(0, write_key_list(first));
  EXPECT_EQ(next().secure().phase(), Secure::SHARES);
  EXPECT_TRUE(message_.secure().keeps_certificates());
  const std::string shares = message_.secure().content();
  // The same list, but for what is known.
  send_work(0, without(first, {0, 1, 2}));
  EXPECT_EQ(next().secure().content(), shares);
  const auto next_sum = [&](uint32_t attempt, const auto& change) {
    send_work(attempt);
    KeyList keys = list(bytes_of(next().secure().content()));
    change(&keys);
    send_secure(Secure::KEYS, attempt, without(keys, {0, 1, 2}));
  };
  next_sum(1, [](KeyList*) {});
  EXPECT_EQ(next().secure().phase(), Secure::SHARES);
  next_sum(2, [](KeyList* keys) { keys->keys.at(1).channel = KeyPair(random_secret()).public_key(); });
  EXPECT_THAT(reason(), HasSubstr("client 1: expected a certificate: refused"));
  next_sum(3, [](KeyList* keys) { std::swap(keys->keys.at(1).channel, keys->keys.at(2).channel); });
  EXPECT_THAT(reason(), HasSubstr("client 1: expected a certificate: refused"));
  // A device that was started again has checked nothing.
  stop_device();
  start_device();
  next_sum(4, [](KeyList*) {});
  EXPECT_THAT(reason(), HasSubstr("expected a certificate: refused"));
}

// Keys that were sent ahead are for one sum, with the list that the device sees first.
TEST_F(HostileServerTest, KeysThatWereSentAheadAreForOneSum) {
  start_device();
  EXPECT_EQ(read_keys(next_keys_).number, 0u);
  const auto list = [&](const Bytes& own) {
    KeyList keys{{0, 1, 2}, {{0, read_keys(own)}}};
    for (const auto& channel : channels_)
      keys.keys[channel->number()] = read_keys(keys_of(random_secret(), *channel));
    return keys;
  };
  // Keys that the device has not sent.
  KeyList foreign = list(next_keys_);
  foreign.keys[0].secret[0] ^= 1;
  send_work(0, write_key_list(foreign));
  EXPECT_THAT(reason(), HasSubstr("found other keys of this client 0: refused"));
  const KeyList first = list(next_keys_);
  send_work(0, write_key_list(first));
  EXPECT_EQ(next().secure().phase(), Secure::SHARES);
  const std::string shares = message_.secure().content();
  // Another list for the same sum, and the same keys in another sum; also after a restart.
  for (int i = 0; i < 2; ++i) {
    send_work(0, write_key_list(list(next_keys_)));
    EXPECT_THAT(reason(), HasSubstr("a second, different list of keys for the same sum: refused"));
    send_work(0, write_key_list(first));
    EXPECT_EQ(next().secure().content(), shares);
    if (i > 0) break;
    const Bytes sent = next_keys_;
    stop_device();
    start_device();
    EXPECT_NE(next_keys_, sent);
    next_keys_ = sent;
  }
  send_work(1, write_key_list(first));
  EXPECT_THAT(reason(), HasSubstr("found other keys of this client 0: refused"));
}

}  // namespace
}  // namespace bitfed
