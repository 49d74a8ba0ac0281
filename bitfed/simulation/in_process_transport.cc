#include "bitfed/simulation/in_process_transport.h"

#include <mutex>

#include "bitfed/base/error.h"
#include "bitfed/federated/client_round.h"

namespace bitfed {
namespace {

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
                 const std::function<void(ClientResult)>& receive) override {
    pool_.for_each(clients.size(), [&](size_t i) {
      if (options_.stop && options_.stop()) return;
      if (round > 0 && drops_out(round, clients[i])) {
        const std::lock_guard lock(mutex_);
        events_({{"event", "client-lost"}, {"round", round}, {"client", clients[i]}});
        return;
      }
      ClientResult result = train(round, clients[i], broadcast);
      const std::lock_guard lock(mutex_);
      receive(std::move(result));
    });
  }

  std::vector<uint32_t> save(uint32_t round) override { return states_.save(round); }
  void restore(uint32_t round, const std::vector<uint32_t>& needed) override {
    states_.restore(round, needed);
  }

 private:
  bool drops_out(uint32_t round, uint32_t client) const {
    return options_.dropout > 0 &&
           RandomStream({options_.seed, "dropout", round, client}).uniform() < options_.dropout;
  }

  ClientResult train(uint32_t round, uint32_t client, const Bytes& broadcast) {
    const Dataset samples = subset(train_, partition_[client]);
    const auto progress = [&](double fraction) {
      const std::lock_guard lock(mutex_);
      events_({{"event", "client-progress"}, {"round", round}, {"client", client}, {"fraction", fraction}});
    };
    ClientOutcome outcome =
        run_client({client_, samples, options_.seed, round, client, options_.stop, progress}, broadcast,
                   states_.of(client));
    if (outcome.result.keeps_state) states_.put(client, std::move(outcome.kept));
    return std::move(outcome.result);
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
