#include "bitfed/simulation/in_process_transport.h"

#include <ctime>
#include <mutex>

#include "bitfed/base/error.h"

namespace bitfed {
namespace {

// CPU time of the calling thread: a client's cost does not depend on how many run beside it.
double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

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
    const double start = thread_seconds();
    const Dataset samples = subset(train_, partition_[client]);
    ClientResult result;
    const ClientContext context{
        RandomStream({options_.seed, "client", round, client}),
        options_.stop,
        [&](double fraction) {
          const std::lock_guard lock(mutex_);
          events_(
              {{"event", "client-progress"}, {"round", round}, {"client", client}, {"fraction", fraction}});
        },
        [&result](uint64_t more) { result.trained_samples += more; },
        states_.of(client).empty() ? State() : decode(states_.of(client), "the client's own state"),
        [&](const State& kept) {
          states_.put(client, encode(kept));
          result.keeps_state = true;
        }};
    result.client = client;
    result.samples = samples.size();
    // Every client reads the bytes of the broadcast, as it would over a network.
    result.upload = encode(client_.train(decode(broadcast, "broadcast"), samples, context));
    result.train_seconds = thread_seconds() - start;
    return result;
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
