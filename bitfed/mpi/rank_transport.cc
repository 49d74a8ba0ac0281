#include "bitfed/mpi/rank_transport.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <thread>

#include "bitfed/base/stopwatch.h"
#include "bitfed/federated/federation.h"
#include "bitfed/mpi/client_threads.h"
#include "bitfed/mpi/dealer.h"
#include "bitfed/mpi/pause.h"

namespace bitfed {
namespace {

// With fewer the sums, which have 16 bytes per parameter, take longer than they save.
constexpr size_t kClientsPerWorker = 2;

// Of another rank's share of small clients: some times as long as an answer takes.
constexpr double kShareSeconds = 0.002;

constexpr double kLateness = 0.01;  // of a client's seconds, that rank 0 may be late for its results

constexpr int kNobody = -1;  // among ranks

constexpr int kRankOfPart = 1;  // the only one that hands its sum to rank 0, see parent_of

// Among all rounds of this process: what belongs to one that was stopped is told apart.
uint64_t next_number() {
  static std::atomic<uint64_t> rounds = 0;
  return ++rounds;
}

class RankTransport : public Transport {
 public:
  RankTransport(Communicator& ranks, const RankTransportOptions& options, const Experiment& experiment,
                ClientStates& states, EventSink events)
      : ranks_(ranks),
        options_(options),
        experiment_(experiment),
        half_(experiment.method->make_client()),
        states_(states),
        events_(std::move(events)),
        dealt_(experiment.partition.size(), kNobody),
        adds_up_(experiment.rounds > 1 && experiment.method->make_server()->adds_up()),
        threads_(std::accumulate(options.threads.begin(), options.threads.end(), 0u)) {
    if (options_.own != nullptr) options_.own->open(experiment);
  }
  ~RankTransport() override {
    if (options_.own != nullptr) options_.own->abandon();
  }
  RankTransport(const RankTransport&) = delete;
  RankTransport& operator=(const RankTransport&) = delete;

  void run_round(uint32_t round, const Bytes& broadcast, const std::vector<uint32_t>& clients,
                 const std::function<void(ClientResult)>& receive) override {
    const Stopwatch clock;
    busy_seconds_ = 0;
    received_bytes_ = 0;
    load_.reset();
    part_.reset();
    added_ = 0;
    std::vector<Dealer::Client> present = answering(round, clients);
    const size_t answers = present.size();
    const bool sums = adds_up_ && round > 0 && answers >= kClientsPerWorker * workers();
    Dealer dealer(std::move(present), threads_);
    if (dealer.empty()) return;
    begin(round, broadcast, sums);
    for (int rank = 1; rank < ranks_.size(); ++rank) deal(rank, dealer);
    if (options_.own != nullptr) deal(0, dealer);
    collect([&] { return all_outstanding_ == 0 && (!sums || part_); }, round, dealer, receive);
    if (all_outstanding_ > 0) return;  // stopped
    if (part_ && part_->scalar<uint64_t>("clients") != added_)
      throw failure("{}: found a sum of {} uploads, expected {}", name(kRankOfPart),
                    part_->scalar<uint64_t>("clients"), added_);
    client_seconds_ = std::max(1e-6, busy_seconds_ / static_cast<double>(answers));
    load_ = TransportLoad{.workers = static_cast<uint32_t>(workers()),
                          .busy = std::min(1.0, busy_seconds_ / (threads_ * std::max(1e-9, clock.seconds()))),
                          .received_bytes = received_bytes_};
  }

  std::optional<State> take_part() override { return std::exchange(part_, std::nullopt); }

  std::optional<LocalClients> local_clients() const override { return LocalClients{*half_, states_}; }
  std::optional<TransportLoad> load() const override { return load_; }
  std::vector<uint32_t> save(uint32_t round) override { return states_.save(round); }
  void write_saved() override { states_.write_saved(); }
  void restore(uint32_t round, const std::vector<uint32_t>& needed) override {
    states_.restore(round, needed);
  }

 private:
  size_t workers() const { return static_cast<size_t>(ranks_.size()) - (options_.own == nullptr ? 1 : 0); }

  void begin(uint32_t round, const Bytes& broadcast, bool sums) {
    number_ = next_number();
    sums_ = sums;
    no_more_ = false;
    outstanding_.assign(static_cast<size_t>(ranks_.size()), 0);
    // An upload that is worth storing is sent by itself.
    const RoundStart start{number_, round, sums ? FederationOptions().keep_seconds : 0,
                           shared(broadcast, static_cast<size_t>(ranks_.size() - 1))};
    send_all(round_message(start));
    if (start.broadcast.follows > 0) ranks_.broadcast(broadcast);
    if (options_.own != nullptr) options_.own->begin_round(start, broadcast);
  }

  void send_all(const Bytes& message) {
    for (int rank = 1; rank < ranks_.size(); ++rank) ranks_.send(rank, message);
  }

  std::vector<Dealer::Client> answering(uint32_t round, const std::vector<uint32_t>& clients) {
    std::vector<Dealer::Client> answering;
    for (const uint32_t client : clients) {
      if (drops_out(experiment_.dropout, experiment_.seed, round, client)) {
        events_(ClientLost{.round = round, .client = client});
      } else {
        answering.push_back({client, experiment_.partition[client].size()});
      }
    }
    return answering;
  }

  void deal(int rank, Dealer& dealer) {
    const uint32_t threads = options_.threads[static_cast<size_t>(rank)];
    const size_t least = rank == 0 ? 1 : static_cast<size_t>(kShareSeconds / client_seconds_);
    const std::vector<uint32_t> clients = dealer.deal(threads, least);
    if (clients.empty()) return;
    outstanding_[static_cast<size_t>(rank)] += clients.size();
    all_outstanding_ += clients.size();
    std::vector<ClientTask> tasks;
    size_t bytes = 0;
    for (const uint32_t client : clients) {
      dealt_[client] = rank;
      tasks.push_back({client, states_.of(client)});
      bytes += tasks.back().kept.size();
      if (rank == 0 || (bytes < options_.work_bytes && client != clients.back())) continue;
      ranks_.send(rank, work_message(std::exchange(tasks, {})));
      bytes = 0;
    }
    if (rank == 0) options_.own->train(std::move(tasks));
    if (!dealer.empty() || std::exchange(no_more_, true)) return;
    send_all(plain_message(MessageKind::kNoMore));
    if (options_.own != nullptr) options_.own->expect_no_more();
  }

  // Where a client takes long, its results may wait a little.
  std::chrono::microseconds longest_pause() const {
    const std::chrono::microseconds of_client(static_cast<int64_t>(1e6 * kLateness * client_seconds_));
    return std::clamp(of_client, Pause::kOrdinary, 20 * Pause::kOrdinary);
  }

  // Until it is done, or the user stops.
  void collect(const std::function<bool()>& done, uint32_t round, Dealer& dealer,
               const std::function<void(ClientResult)>& receive) {
    Pause pause(longest_pause()), beside(longest_pause(), Pause::kBesideTraining);
    const auto reset = [&] {
      pause.reset();
      beside.reset();
    };
    while (!done()) {
      if (options_.stop && options_.stop()) return;
      if (const auto message = ranks_.poll()) {
        reset();
        handle(round, *message, dealer, receive);
      } else if (auto news = options_.own != nullptr ? options_.own->take_news() : std::nullopt) {
        reset();
        handle_own(round, *std::move(news), dealer, receive);
      } else if (options_.own != nullptr && !options_.own->is_idle()) {
        options_.own->wait_for(beside.next());
      } else if (pause.is_short()) {
        std::this_thread::yield();
      } else {
        std::this_thread::sleep_for(pause.next());
      }
    }
  }

  void handle(uint32_t round, const Communicator::Message& message, Dealer& dealer,
              const std::function<void(ClientResult)>& receive) {
    received_bytes_ += message.bytes.size();
    switch (kind_of(message.bytes)) {
      case MessageKind::kProgress:
        show(round, message.from, read_progress(message.bytes));
        break;
      case MessageKind::kFailed:
        fail(message.from, read_failed(message.bytes));
      case MessageKind::kResults: {
        Results results = read_results(message.bytes);
        for (const TrainedClient& trained : results.clients) check(message.from, trained.result);
        take(message.from, std::move(results), dealer, receive);
        break;
      }
      case MessageKind::kPart:
        if (Part part = read_part(message.bytes); part.number == number_) {
          if (!sums_ || part_ || message.from != kRankOfPart)
            throw failure("{}: found a sum of uploads, expected none", name(message.from));
          part_ = std::move(part.sum);
        }
        break;
      default:
        throw failure("{}: a message that does not belong to a round", name(message.from));
    }
  }

  void handle_own(uint32_t round, ClientThreads::News news, Dealer& dealer,
                  const std::function<void(ClientResult)>& receive) {
    if (news.progress) show(round, 0, *news.progress);
    take(0, std::move(news.results), dealer, receive);
    if (!news.failures.empty()) fail(0, news.failures.front());
  }

  void show(uint32_t round, int rank, const ClientFraction& progress) {
    if (has(rank, progress.client))
      events_(ClientProgress{.round = round, .client = progress.client, .fraction = progress.fraction});
  }

  [[noreturn]] void fail(int rank, const Failure& failure) const {
    if (failure.kind == Error::Kind::kStopped) throw Error(failure.kind, failure.text);
    throw Error(failure.kind, fmt::format("{}: {}", name(rank), failure.text));
  }

  bool has(int rank, uint32_t client) const { return client < dealt_.size() && dealt_[client] == rank; }

  // Counts the result: each is expected once.
  void check(int rank, const ClientResult& result) {
    if (!has(rank, result.client))
      throw failure("{}: found a result of client {}, expected one of a client that it trains", name(rank),
                    result.client);
    dealt_[result.client] = kNobody;
    if (!result.upload.empty()) return;
    if (!sums_) throw failure("{}: found no upload of client {}", name(rank), result.client);
    ++added_;
  }

  std::string name(int rank) const { return rank_name(rank, options_.hosts[static_cast<size_t>(rank)]); }

  void take(int from, Results results, Dealer& dealer, const std::function<void(ClientResult)>& receive) {
    const auto rank = static_cast<size_t>(from);
    busy_seconds_ += results.busy_seconds;
    outstanding_[rank] -= results.clients.size();
    all_outstanding_ -= results.clients.size();
    // First the next share, so that the rank does not wait while its results are taken.
    if (results.wants_more || (rank > 0 && outstanding_[rank] < options_.threads[rank])) deal(from, dealer);
    for (TrainedClient& trained : results.clients) {
      if (trained.result.keeps_state)
        states_.put(trained.result.client, std::move(trained.kept), trained.judged);
      trained.result.more_follow = &trained != &results.clients.back();
      receive(std::move(trained.result));
    }
  }

  Communicator& ranks_;
  RankTransportOptions options_;
  const Experiment& experiment_;
  std::unique_ptr<ClientHalf> half_;
  ClientStates& states_;
  EventSink events_;
  std::vector<int> dealt_;  // by client, the rank that trains it
  bool adds_up_;
  uint32_t threads_;                 // of all ranks
  std::vector<size_t> outstanding_;  // clients, by rank
  size_t all_outstanding_ = 0;
  uint64_t number_ = 0;   // of the round
  bool sums_ = false;     // of this round's uploads: other ranks add up
  bool no_more_ = false;  // all clients are dealt, and the others know
  uint64_t added_ = 0;    // uploads that reach this rank as a sum
  double busy_seconds_ = 0;
  double client_seconds_ = 1;  // of a client in the round before
  uint64_t received_bytes_ = 0;
  std::optional<State> part_;
  std::optional<TransportLoad> load_;
};

}  // namespace

std::unique_ptr<Transport> make_rank_transport(Communicator& ranks, const RankTransportOptions& options,
                                               const Experiment& experiment, ClientStates& states,
                                               EventSink events) {
  return std::make_unique<RankTransport>(ranks, options, experiment, states, std::move(events));
}

std::string rank_name(int rank, const std::string& host) {
  return fmt::format("rank {} on {}", rank, host);
}

}  // namespace bitfed
