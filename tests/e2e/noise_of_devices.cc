// Simulates a federation of one round with the noise that devices added to their updates: drawn from the
// secrets that they keep of the round. Prints the model's digest, which is that of their federation.
//   noise_of_devices RECIPE OUT STATE: the folders of the devices' state are STATE-0, STATE-1 ...

#include <fmt/format.h>

#include <bit>

#include "bitfed/base/error.h"
#include "bitfed/federated/client_round.h"
#include "bitfed/rpc/device/client_store.h"
#include "bitfed/secure/protocol/secure_client.h"
#include "bitfed/simulation/experiment.h"

namespace {

using namespace bitfed;

std::function<uint64_t()> noise_of(const std::string& state) {
  const ClientStore store(state + "/client.sqlite");
  const auto sum = store.sum();
  if (!sum) throw input_error("{}: found no sum", state);
  const auto channel = std::make_shared<Channel>(sum->session.channel, "", 0, std::make_shared<NoIdentity>());
  const SecureClient client({sum->session.session, sum->session.secret}, channel, 1);
  return [stream = std::make_shared<KeyStream>(client.noise_seed())] {
    std::array<uint8_t, 8> bytes = {};
    stream->next(bytes);
    return std::bit_cast<uint64_t>(bytes);
  };
}

class Devices : public Transport {
 public:
  Devices(const Experiment& experiment, std::string state)
      : recipe_(Config::parse(experiment.recipe, "recipe")),
        experiment_(experiment),
        state_(std::move(state)) {}

  void run_round(uint32_t round, const Bytes& broadcast, const std::vector<uint32_t>& clients,
                 const std::function<void(ClientResult)>& receive) override {
    const State decoded = decode(broadcast, "broadcast");
    const Bytes nothing;
    for (const uint32_t client : clients) {
      const auto half =
          make_client_half({.recipe = recipe_, .prototype = experiment_.train, .seed = experiment_.seed},
                           [&] { return noise_of(fmt::format("{}-{}", state_, client)); });
      const Dataset samples = samples_at(experiment_.train, experiment_.partition[client]);
      receive(
          run_client({*half, decoded, experiment_.seed, round, {}}, {client, samples, nothing, [](double) {}})
              .result);
    }
  }

 private:
  const Config recipe_;  // as resolved, which is what devices are sent
  const Experiment& experiment_;
  std::string state_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  ExperimentOptions options;
  options.out = argv[2];
  options.transport = [&](const Experiment& experiment, ClientStates& /*states*/, const EventSink& /*sink*/) {
    return std::make_unique<Devices>(experiment, argv[3]);
  };
  fmt::print("{}\n",
             run_experiment(Config::load(argv[1]), options, [](const Event&) {}).summary.model_sha256);
}
