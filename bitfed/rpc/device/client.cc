#include "bitfed/rpc/device/client.h"

#include <algorithm>
#include <deque>
#include <random>
#include <thread>

#include "bitfed/base/error.h"
#include "bitfed/base/toml.h"
#include "bitfed/federated/client_round.h"
#include "bitfed/federated/privacy/differential_privacy.h"
#include "bitfed/federated/privacy/privacy_recipe.h"
#include "bitfed/rpc/device/backoff.h"
#include "bitfed/rpc/device/client_store.h"
#include "bitfed/rpc/device/device_sum.h"
#include "bitfed/rpc/grpc_connection.h"
#include "bitfed/rpc/protocol.h"
#include "bitfed/rpc/security/renewal.h"
#include "bitfed_v1.pb.h"

namespace bitfed {
namespace {

namespace fs = std::filesystem;

using v1::FromClient;
using v1::FromServer;
using v1::Verdict;
using Update = ClientStore::Update;

constexpr auto kTick = std::chrono::milliseconds(100);
constexpr int64_t kWarnSeconds = int64_t{30} * 86400;  // before the certificate expires
constexpr auto kAskEvery = std::chrono::hours(1);      // then, for a new one
constexpr uint32_t kMaxSide = 1 << 16;                 // of an image
constexpr const char* kFailedHere = "training failed; the device's own log says why";

void read_pixel_statistics(const v1::Prototype& message, Dataset* prototype) {
  prototype->pixel_mean.assign(message.pixel_mean().begin(), message.pixel_mean().end());
  prototype->pixel_std.assign(message.pixel_std().begin(), message.pixel_std().end());
  const auto is_finite = [](float value) { return std::isfinite(value); };
  const auto is_positive = [](float value) { return std::isfinite(value) && value > 0; };
  if (!std::ranges::all_of(prototype->pixel_mean, is_finite) ||
      !std::ranges::all_of(prototype->pixel_std, is_positive)) {
    throw input_error(
        "the server's description of the data: expected finite pixel_mean and pixel_std above 0");
  }
}

Dataset read_prototype(const v1::Prototype& message) {
  Dataset prototype;
  prototype.name = message.name();
  prototype.height = message.height();
  prototype.width = message.width();
  prototype.channels = message.channels();
  prototype.columns.assign(message.columns().begin(), message.columns().end());
  prototype.class_names.assign(message.class_names().begin(), message.class_names().end());
  const bool image = prototype.height > 0 && prototype.height < kMaxSide && prototype.width > 0 &&
                     prototype.width < kMaxSide && prototype.channels > 0 && prototype.channels < kMaxSide;
  if (prototype.class_names.empty() || prototype.class_names.size() > UINT16_MAX ||
      image == prototype.is_table()) {
    throw input_error("the server's description of the data: expected classes, and either images or columns");
  }
  read_pixel_statistics(message, &prototype);
  return prototype;
}

// A recipe's [privacy] with its keys in order, on one line.
std::string privacy_text(const std::string& recipe) {
  const toml::Table keys = toml::parse(recipe, "the server's recipe");
  const auto found = keys.find("privacy");
  return found == keys.end() ? "{}" : toml::value_text(found->second);
}

// What the server said in its welcome, made ready for work.
struct Job {
  std::string federation;
  uint32_t number = 0;
  uint64_t seed = 0;
  std::string recipe;
  std::unique_ptr<ClientHalf> half;  // null: not welcome so far
  PrivacyRecipe privacy;
  bool is_private = false;  // updates are clipped, and noise is added to their sum
  Dataset samples;
};

class FederationClient {
 public:
  FederationClient(const ClientOptions& options, const EventSink& events)
      : options_(options),
        events_(events),
        store_(options.state / "client.sqlite"),
        sum_(store_, options.trust,
             {[this](const FromClient& message) { send(message); }, [this] { return next_of_sum(); }},
             events) {}

  fs::path run() {
    std::error_code code;
    if (fs::exists(model_file(), code)) return model_file();
    events_(DeviceConnecting{.server = options_.server});
    int failures = 0;
    while (!live()) {
      if (std::exchange(progress_made_, false)) failures = 0;
      pause(failures++);
    }
    return model_file();
  }

 private:
  fs::path model_file() const { return options_.state / "model.safetensors"; }

  void check_stop() const {
    if (options_.stop && options_.stop()) throw Error(Error::Kind::kStopped, "stopped");
  }

  void pause(int failures) {
    if (options_.give_up_seconds > 0 && seconds_alone() > options_.give_up_seconds)
      throw failure("{}: no server for {:.0f} s: {}", options_.server, seconds_alone(), last_end_);
    const Pause range = pause_after(failures, refused_);
    const double seconds = std::uniform_real_distribution<double>(range.min, range.max)(jitter_);
    const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    while (std::chrono::steady_clock::now() < until) {
      check_stop();
      std::this_thread::sleep_for(
          std::min<std::chrono::duration<double>>(kTick, until - std::chrono::steady_clock::now()));
    }
  }

  double seconds_alone() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - last_heard_).count();
  }

  // One connection's life. True: the federation is over and its model is here.
  bool live() {
    later_.clear();
    try {
      open();
      say_hello();
      if (const auto update = store_.finished_update()) deliver(*update);
      FromClient ready;
      if (!job_.privacy.secure_aggregation) {
        ready.mutable_ready()->set_samples(job_.samples.size());
      } else {
        ready.mutable_ready()->set_next_keys(sum_.keys_ahead());
      }
      send(ready);
      while (true) {
        const Received received = next_task();
        if (received.message->has_result()) {
          take_result(received);
          return true;
        }
        work(received);
      }
    } catch (const Lost&) {
      lost();
    }
    return false;
  }

  struct Lost {};  // the connection is gone

  // A certificate that has expired, or that is half copied while the client runs, is no reason to end: it may
  // be replaced at any time. One that cannot be read at the start is a mistake.
  void open() {
    const auto left = certificate_seconds_left(options_.trust);
    if (left && *left < kWarnSeconds && !std::exchange(warned_, true)) {
      events_(CertificateExpires{.file = options_.trust.certificate.string(), .days = *left / 86400});
    }
    sum_.reconnect();
    try {
      connection_ = open_connection(options_.server, options_.trust);
    } catch (const Error& error) {
      const bool expired = left && *left <= 0;
      if (error.kind() != Error::Kind::kInput || (job_.half == nullptr && !expired)) throw;
      last_end_ = error.what();
      throw Lost();
    }
  }

  void lost() {
    if (connection_ != nullptr) {
      const auto end = wait_for_end();
      connection_.reset();
      last_end_ = end ? end->text : "the connection was lost";
      refused_ = end && end->refused;
      if (end && end->final) throw failure("{}: {}", options_.server, end->text);
    }
    if (last_end_ != told_end_) {
      events_(DeviceDisconnected{.text = last_end_});
      told_end_ = last_end_;
    }
  }

  std::optional<Connection::End> wait_for_end() {
    for (int i = 0; i < 20; ++i) {
      while (connection_->receive(kTick) != nullptr) {
      }
      if (const auto end = connection_->end()) return end;
    }
    return std::nullopt;
  }

  void send(const FromClient& message) {
    if (!connection_->send(message)) throw Lost();
  }

  std::unique_ptr<FromServer> next_message() {
    while (true) {
      check_stop();
      if (auto message = connection_->receive(kTick)) {
        last_heard_ = std::chrono::steady_clock::now();
        if (message->message_case() != FromServer::kRenewed) return message;
        take_certificate(message->renewed());
        continue;
      }
      if (connection_->end()) throw Lost();
      sum_.forget_old_keys();
      ask_for_certificate();
    }
  }

  void ask_for_certificate() {
    const auto now = std::chrono::steady_clock::now();
    if (!server_renews_ || (asked_ && now - *asked_ < kAskEvery)) return;
    asked_ = now;
    const auto left = certificate_seconds_left(options_.trust);
    if (!left || *left > kWarnSeconds) return;
    FromClient message;
    message.set_renew(renewal_request(options_.trust.certificate, options_.trust.key));
    send(message);
  }

  // The next connection uses it.
  void take_certificate(const std::string& pem) {
    if (pem.empty()) return;
    install_renewed(options_.trust, pem);
    events_(Warning{.text = options_.trust.certificate.string() + ": was renewed"});
  }

  struct Received {
    std::unique_ptr<FromServer> message;
    Bytes bytes;  // that came after it, for work and the result
  };

  Received next() {
    Received received{next_message(), {}};
    if (received.message->has_work())
      received.bytes = take_chunks(received.message->work().size(), received.message->work().sha256());
    if (received.message->has_result())
      received.bytes = take_chunks(received.message->result().size(), received.message->result().sha256());
    return received;
  }

  Bytes take_chunks(uint64_t size, const std::string& sha256) {
    Incoming incoming(size, sha256, options_.max_broadcast_bytes);
    while (true) {
      const auto message = next_message();
      if (message->message_case() != FromServer::kChunk)
        throw input_error("the server: found another message, expected the rest of {} bytes", size);
      if (incoming.add(message->chunk())) return incoming.take();
    }
  }

  // For a sum: none when newer work has come, which waits for its turn.
  std::optional<v1::Secure> next_of_sum() {
    Received received = next();
    if (is_task(*received.message)) {
      later_.push_back(std::move(received));
      return std::nullopt;
    }
    if (!received.message->has_secure())
      throw input_error("the server: found another message, expected keys or shares");
    return std::move(*received.message->mutable_secure());
  }

  static bool is_task(const FromServer& message) { return message.has_work() || message.has_result(); }

  // Work, or the result. In between it helps to open the sum of the last round.
  Received next_task() {
    Received received;
    if (!later_.empty()) {
      received = std::move(later_.front());
      later_.pop_front();
      return received;
    }
    do {
      received = next();
      if (received.message->has_secure()) sum_.open(received.message->secure(), nullptr);
    } while (received.message->has_secure());
    if (!is_task(*received.message))
      throw input_error("the server: found another message, expected work or the result");
    return received;
  }

  void say_hello() {
    FromClient message;
    v1::Hello& hello = *message.mutable_hello();
    hello.set_least_protocol(kMinProtocol);
    hello.set_most_protocol(kMaxProtocol);
    hello.set_version(options_.version);
    if (options_.trust.plaintext) hello.set_name(options_.name);
    if (options_.own.part) hello.set_part(*options_.own.part);
    if (const auto membership = store_.membership()) hello.set_federation(membership->federation);
    hello.set_after_round(store_.after_round());
    hello.set_masks(kMaskProtocol);
    send(message);
    const auto answer = next_message();
    if (!answer->has_welcome()) throw input_error("the server: found another message, expected a welcome");
    told_end_.clear();
    server_renews_ = answer->welcome().renews();
    max_update_in_offer_ = std::min<uint64_t>(answer->welcome().max_update_in_offer(), kMaxUpdateInOffer);
    prepare(answer->welcome());
  }

  // Reads the recipe and the samples, the first time; afterwards they must be the same.
  void prepare(const v1::Welcome& welcome) {
    if (!common_protocol(welcome.protocol(), welcome.protocol()))
      throw input_error("the server: found protocol {}, expected {} to {}", welcome.protocol(), kMinProtocol,
                        kMaxProtocol);
    if (const auto membership = store_.membership()) {
      if (membership->federation != welcome.federation() || membership->number != welcome.number()) {
        throw input_error("{}: found the state of client {} of federation {}, expected client {} of {}",
                          options_.state.string(), membership->number, membership->federation,
                          welcome.number(), welcome.federation());
      }
    }
    if (job_.half != nullptr) {
      if (job_.recipe != welcome.recipe() || job_.seed != welcome.seed())
        throw input_error("{}: the server came back with another recipe", options_.server);
      return;
    }
    const Config recipe = Config::parse(welcome.recipe(), "the server's recipe");
    const Dataset prototype = read_prototype(welcome.prototype());
    job_.federation = welcome.federation();
    job_.number = welcome.number();
    job_.seed = welcome.seed();
    job_.recipe = welcome.recipe();
    job_.samples = load_own_samples(options_.own, recipe, job_.seed, prototype);
    job_.half = make_client_half({recipe, prototype, job_.seed}, [this] { return sum_.noise(); });
    job_.privacy = read_privacy(recipe, 0);
    sum_.join(job_.federation, job_.number, job_.privacy.min_survivors);
    job_.is_private = has_differential_privacy(recipe);
    if (options_.masked && !job_.privacy.secure_aggregation) {
      throw input_error(
          "the server's recipe: expected privacy.secure_aggregation = true, without which --masked sends no "
          "update");
    }
    if (clients_add_noise(recipe) && !job_.privacy.secure_aggregation) {
      throw input_error(
          "the server's recipe: privacy.noise: found 'clients' without secure_aggregation, expected it: the "
          "server would see each update with its small share of the noise");
    }
    check_privacy();
    if (!store_.membership()) store_.join({job_.federation, job_.number});
    events_(DeviceJoined{.server = options_.server,
                         .federation = job_.federation,
                         .client = job_.number,
                         .samples = job_.samples.size()});
  }

  // The recipe comes from the server, and this is what it promises: a server that comes back with less must
  // ask its clients.
  void check_privacy() {
    const std::string privacy = privacy_text(job_.recipe);
    const auto joined = store_.privacy();
    if (joined == privacy) return;
    if (joined && !options_.accept_privacy) {
      throw input_error(
          "the server's recipe: [privacy]: found {}, expected {}, with which this device has joined; start it "
          "with --accept-privacy to take part all the same",
          privacy, *joined);
    }
    store_.put_privacy(privacy);
  }

  // Whether the recipe promises that nobody sees the update as it is: then the server learns no more of it by
  // other ways, as by an error that quotes a value.
  bool hides_updates() const { return job_.privacy.secure_aggregation || job_.is_private; }

  // Offers the update, sends it if it is wanted, and keeps or drops the state that belongs to it, by the
  // verdict. That a sum is to be opened with the update in it is as good as one.
  void deliver(const Update& update) {
    FromClient message;
    v1::Offer& offer = *message.mutable_offer();
    offer.set_round(update.round);
    offer.set_broadcast_sha256(update.broadcast_sha256);
    offer.set_size(update.result.upload.size());
    offer.set_sha256(update.sha256);
    // Under masks even a client's weight is in the sum alone.
    if (!job_.privacy.secure_aggregation) {
      offer.set_samples(update.result.samples);
      offer.set_trained_samples(update.result.trained_samples);
      offer.set_train_seconds(update.result.train_seconds);
    }
    if (const Bytes& upload = update.result.upload; upload.size() <= max_update_in_offer_)
      offer.set_update(upload.data(), upload.size());
    send(message);
    bool refused = false;  // to help open the sum
    while (true) {
      Received answer = next();
      if (is_task(*answer.message)) {
        // The next round may begin while the server has not yet come to this update. If it has, and said so
        // by an opening that was refused, there is no verdict but by asking.
        later_.push_back(std::move(answer));
        if (std::exchange(refused, false)) send(message);
        continue;
      }
      if (answer.message->has_secure()) {
        if (sum_.open(answer.message->secure(), &update)) {
          settled(update, "accepted", "");
          return;
        }
        refused = answer.message->secure().phase() == v1::Secure::OPENING;
        continue;
      }
      if (!answer.message->has_verdict())
        throw input_error("the server: found another message, expected a verdict");
      const Verdict& verdict = answer.message->verdict();
      if (verdict.round() != update.round || verdict.sha256() != update.sha256)
        throw input_error("the server: found a verdict on another update");
      if (verdict.kind() != Verdict::WANTED) {
        settle(update, verdict);
        return;
      }
      send_chunks(update.result.upload);
    }
  }

  void send_chunks(const Bytes& bytes) {
    FromClient message;
    for (size_t sent = 0; sent < bytes.size();) {
      const size_t size = std::min(kChunkBytes, bytes.size() - sent);
      message.set_chunk(bytes.data() + sent, size);
      send(message);
      sent += size;
    }
  }

  void settle(const Update& update, const Verdict& verdict) {
    const char* kind = "refused";
    switch (verdict.kind()) {
      case Verdict::ACCEPTED:
        store_.accepted();
        kind = "accepted";
        break;
      case Verdict::DISCARDED:
        store_.dropped();
        kind = "discarded";
        break;
      case Verdict::REFUSED:
        store_.dropped();
        break;
      default:
        throw input_error("the server: found a verdict of kind {}", static_cast<int>(verdict.kind()));
    }
    settled(update, kind, verdict.reason());
  }

  void settled(const Update& update, const char* kind, const std::string& reason) {
    progress_made_ = true;
    events_(UpdateSettled{.round = update.round,
                          .verdict = kind,
                          .upload_bytes = update.result.upload.size(),
                          .seconds = update.result.train_seconds,
                          .text = reason});
  }

  void work(const Received& received) {
    const v1::Work& work = received.message->work();
    events_(WorkReceived{.round = work.round(), .download_bytes = received.bytes.size()});
    if (const auto last = store_.last_accepted();
        last && work.round() <= *last && !std::exchange(went_back_, true)) {
      events_(Warning{
          .text = fmt::format("the server begins round {}, but has accepted an update of round {}: it was "
                              "restored from an older copy, and the model will be another",
                              work.round(), *last)});
    }
    std::optional<ClientOutcome> outcome;
    std::string made_for = work.sha256();
    std::string sha256;
    std::optional<ClientStore::Sum> sum;  // that the update is masked for
    bool says_why = true;
    try {
      if (job_.privacy.secure_aggregation) {
        if (!sum_.begin(work)) return;  // for newer work
        made_for = sum_.session();
      }
      says_why = !hides_updates();  // from here on an error may quote the samples or the update
      outcome = train(work, received.bytes);
      if (job_.privacy.secure_aggregation) {
        says_why = true;
        if (!sum_.take_shares(work)) return;  // for newer work
        says_why = false;
        sum_.mask(&*outcome->result.state);
      }
      outcome->result.upload = encode(*outcome->result.state);
      outcome->result.state.reset();
      sha256 = text_of(digest_of(outcome->result.upload));
      says_why = true;
      if (job_.privacy.secure_aggregation) sum = sum_.sends(work, sha256);
    } catch (const Error& error) {
      check_stop();
      if (error.kind() == Error::Kind::kStopped) return;  // for newer work
      events_(TrainingFailed{.round = work.round(), .text = error.what()});
      FromClient message;
      message.mutable_failed()->set_round(work.round());
      message.mutable_failed()->set_reason(says_why ? error.what() : kFailedHere);
      if (const auto* broken = dynamic_cast<const BrokenShares*>(&error))
        message.mutable_failed()->set_about(broken->sender);
      send(message);
      return;
    }
    Update update;
    update.round = work.round();
    update.broadcast_sha256 = made_for;
    update.sha256 = std::move(sha256);
    update.result = std::move(outcome->result);
    update.kept = std::move(outcome->kept);
    // Durable before it is offered: the server may count on it from then on.
    store_.finish(update, sum ? &*sum : nullptr);
    deliver(update);
  }

  ClientOutcome train(const v1::Work& work, const Bytes& broadcast) {
    const auto stop = [this] { return (options_.stop && options_.stop()) || connection_->has_newer_work(); };
    const auto progress = [&](double fraction) {
      events_(ClientProgress{.round = work.round(), .client = job_.number, .fraction = fraction});
    };
    const Bytes kept = store_.kept();
    const ClientWork client = {job_.number, job_.samples, kept, progress};
    ClientOutcome outcome = std::move(
        run_cohort({*job_.half, decode(broadcast, "broadcast"), job_.seed, work.round(), stop}, {&client, 1})
            .front());
    if (outcome.error) std::rethrow_exception(outcome.error);
    return outcome;
  }

  void take_result(const Received& received) {
    decode(received.bytes, "the server's model");
    store_.forget_keys();
    write_file_atomically(model_file(), received.bytes);
    connection_->finish();
    connection_.reset();
    events_(ResultReceived{.rounds = received.message->result().rounds(), .model = model_file().string()});
  }

  const ClientOptions& options_;
  const EventSink& events_;
  ClientStore store_;
  std::unique_ptr<Connection> connection_;
  Job job_;
  DeviceSum sum_;                     // for secure aggregation
  std::deque<Received> later_;        // tasks that came while something else was waited for
  bool refused_ = false;              // the server refused the last connection, for now
  bool server_renews_ = false;        // certificates
  uint64_t max_update_in_offer_ = 0;  // as the server takes it
  std::optional<std::chrono::steady_clock::time_point> asked_;  // for a new certificate, last
  bool went_back_ = false;                                      // a warning was logged that the server did
  bool warned_ = false;                                         // that the certificate expires
  bool progress_made_ = false;                                  // since the last pause
  std::string last_end_ = "no answer yet";
  std::string told_end_;
  std::chrono::steady_clock::time_point last_heard_ = std::chrono::steady_clock::now();
  std::minstd_rand jitter_{std::random_device()()};
};

}  // namespace

fs::path run_federation_client(const ClientOptions& options, const EventSink& events) {
  return FederationClient(options, events).run();
}

}  // namespace bitfed
