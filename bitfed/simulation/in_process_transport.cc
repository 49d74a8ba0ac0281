#include "bitfed/simulation/in_process_transport.h"

#include <algorithm>
#include <mutex>
#include <span>

#include "bitfed/base/error.h"
#include "bitfed/federated/client_round.h"

namespace bitfed {
namespace {

using Receive = std::function<void(ClientResult)>;

class InProcessTransport : public Transport {
 public:
  InProcessTransport(const SimulationOptions& options, const ClientHalf& client, const Dataset& train,
                     const Partition& partition, ClientStates& states, ThreadPool& pool, EventSink events)
      : options_(options),
        client_(client),
        train_(train),
        partition_(partition),
        states_(states),
        pool_(pool),
        events_(std::move(events)) {}

  void run_round(uint32_t round, const Bytes& broadcast, const std::vector<uint32_t>& clients,
                 const Receive& receive) override {
    const State decoded = decode(broadcast, "broadcast");
    RoundWork work{client_, decoded, options_.seed, round, options_.stop};
    const std::span<const uint32_t> all(clients);
    if (client_.cohort() > 1) {
      work.pool = &pool_;
      // A group takes as long as its largest client: those of like size train together.
      std::vector<uint32_t> by_size = clients;
      std::stable_sort(by_size.begin(), by_size.end(),
                       [&](uint32_t a, uint32_t b) { return partition_[a].size() > partition_[b].size(); });
      run_clients(work, by_size, receive);
    } else {
      pool_.for_each(all.size(), [&](size_t i) { run_clients(work, all.subspan(i, 1), receive); });
    }
  }

  std::optional<LocalClients> local_clients() const override { return LocalClients{client_, states_}; }
  std::vector<uint32_t> save(uint32_t round) override { return states_.save(round); }
  void write_saved() override { states_.write_saved(); }
  void restore(uint32_t round, const std::vector<uint32_t>& needed) override {
    states_.restore(round, needed);
  }

 private:
  // Those that do not drop out, in groups as large as the client half can train in one step.
  void run_clients(const RoundWork& work, std::span<const uint32_t> clients, const Receive& receive) {
    std::vector<uint32_t> group;
    for (const uint32_t client : clients) {
      if (options_.stop && options_.stop()) return;
      if (drops_out(options_.dropout, options_.seed, work.round, client)) {
        emit(ClientLost{.round = work.round, .client = client});
        continue;
      }
      group.push_back(client);
      if (group.size() < client_.cohort()) continue;
      run_group(work, group, receive);
      group.clear();
    }
    if (!group.empty()) run_group(work, group, receive);
  }

  // A client's error is thrown after the other clients' results were received.
  void run_group(const RoundWork& round, const std::vector<uint32_t>& group, const Receive& receive) {
    std::vector<Dataset> samples;
    std::vector<Bytes> kept;
    samples.reserve(group.size());
    kept.reserve(group.size());
    std::vector<ClientWork> work;
    for (const uint32_t client : group) {
      samples.push_back(samples_at(train_, partition_[client]));
      kept.push_back(states_.of(client));
      work.push_back({client, samples.back(), kept.back(), [this, &round, client](double fraction) {
                        emit(ClientProgress{.round = round.round, .client = client, .fraction = fraction});
                      }});
    }
    std::exception_ptr error;
    std::vector<ClientResult> results;
    for (ClientOutcome& outcome : run_cohort(round, work)) {
      if (outcome.error) {
        if (!error) error = outcome.error;
        continue;
      }
      if (outcome.result.keeps_state) states_.put(outcome.result.client, std::move(outcome.kept));
      if (!results.empty()) results.back().more_follow = true;
      results.push_back(std::move(outcome.result));
    }
    {
      const std::lock_guard lock(mutex_);
      for (ClientResult& result : results) receive(std::move(result));
    }
    if (error) std::rethrow_exception(error);
  }

  void emit(const Event& event) {
    const std::lock_guard lock(mutex_);
    events_(event);
  }

  SimulationOptions options_;
  const ClientHalf& client_;
  const Dataset& train_;
  const Partition& partition_;
  ClientStates& states_;
  ThreadPool& pool_;
  EventSink events_;
  std::mutex mutex_;
};

}  // namespace

std::unique_ptr<Transport> make_in_process_transport(const SimulationOptions& options,
                                                     const ClientHalf& client, const Dataset& train,
                                                     const Partition& partition, ClientStates& states,
                                                     ThreadPool& pool, EventSink events) {
  return std::make_unique<InProcessTransport>(options, client, train, partition, states, pool,
                                              std::move(events));
}

}  // namespace bitfed
