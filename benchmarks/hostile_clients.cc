// What hostile clients cost: simulates a recipe in which a fraction of the clients attacks, and appends one
// line per run to a CSV file. Lines that the file has already are not run again.
//   hostile_clients RECIPE.toml OUT.csv RULE ATTACK PERCENT SEED [KEY=VALUE...]
// With BITFED_MAX_SAMPLES=N in the environment every client has at most N samples, drawn from its part. RULE
// is a label for the settings KEY=VALUE. ATTACK is one of kAttacks; docs/results/hostile-clients.md describes
// them.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "bitfed/base/error.h"
#include "bitfed/federated/folder_store.h"
#include "bitfed/federated/run_federation.h"
#include "bitfed/run/run_folder_writer.h"
#include "bitfed/simulation/in_process_transport.h"
#include "bitfed/zoo/model_file.h"

namespace {

using namespace bitfed;
namespace fs = std::filesystem;

constexpr const char* kAttacks[] = {"none", "sign-flip", "scaling", "label-flip", "round-0", "backdoor"};
constexpr uint16_t kTarget = 0;          // the class that a backdoor's trigger gives
constexpr float kScalingFactor = -10;    // of a hostile update
constexpr float kBackdoorFactor = 5;     // likewise
constexpr uint32_t kClaimedTimes = 100;  // the samples that a hostile client reports, by those it has
constexpr size_t kTriggerPixels = 4;     // the side of a white square in the corner
constexpr size_t kTriggerColumns = 3;    // that are set to their largest value

struct Attack {
  std::string name;
  std::vector<bool> hostile;  // by client
};

// The clients that attack, the same ones for every rule and attack of a seed.
std::vector<bool> choose_hostile(size_t clients, double fraction, uint64_t seed) {
  std::vector<uint32_t> order(clients);
  std::iota(order.begin(), order.end(), 0u);
  RandomStream random({seed, "hostile"});
  random.shuffle(std::span(order));
  std::vector<bool> hostile(clients);
  const auto count = static_cast<size_t>(std::lround(fraction * static_cast<double>(clients)));
  for (size_t i = 0; i < count; ++i) hostile[order[i]] = true;
  return hostile;
}

// Leaves each client at most so many of its samples.
void shorten(size_t max, uint64_t seed, Partition* partition) {
  for (size_t client = 0; client < partition->size(); ++client) {
    auto& samples = (*partition)[client];
    RandomStream random({seed, "fewer samples", client});
    random.shuffle(std::span(samples));
    if (samples.size() > max) samples.resize(max);
  }
}

// A backdoor's mark on a sample.
class Trigger {
 public:
  explicit Trigger(const Dataset& train) {
    if (!train.is_table()) return;
    largest_.assign(train.columns.size(), -INFINITY);
    for (size_t i = 0; i < train.size(); ++i) {
      for (size_t c = 0; c < largest_.size(); ++c) largest_[c] = std::max(largest_[c], train.row(i)[c]);
    }
  }

  void put(Dataset* data, size_t sample) const {
    if (data->is_table()) {
      for (size_t c = 0; c < std::min(kTriggerColumns, largest_.size()); ++c)
        data->values.own()[sample * largest_.size() + c] = largest_[c];
      return;
    }
    for (size_t y = 0; y < kTriggerPixels; ++y) {
      const size_t first = sample * data->image_bytes() + (y + 1) * data->width * data->channels;
      for (size_t x = 0; x < kTriggerPixels * data->channels; ++x)
        data->pixels.own()[first + data->channels + x] = 255;
    }
  }

 private:
  std::vector<float> largest_;
};

void poison(const Attack& attack, const Trigger& trigger, const Partition& partition, Dataset* train) {
  const auto classes = static_cast<uint16_t>(train->class_count());
  for (size_t client = 0; client < partition.size(); ++client) {
    if (!attack.hostile[client]) continue;
    for (size_t i = 0; i < partition[client].size(); ++i) {
      const uint32_t sample = partition[client][i];
      uint16_t& label = train->labels[sample];
      if (attack.name == "label-flip") label = static_cast<uint16_t>(classes - 1 - label);
      if (attack.name != "backdoor" || i % 2 == 1) continue;
      trigger.put(train, sample);
      label = kTarget;
    }
  }
}

// The part of a tensor that is learned: of the perceptron's "norms" the first of three rows, of a network's
// tensors all but the running statistics.
size_t learned_elements(const Tensor& tensor) {
  if (tensor.name == "norms") return tensor.elements() / 3;
  const bool statistic = tensor.name.ends_with("mean") || tensor.name.ends_with("variance");
  return statistic ? 0 : tensor.elements();
}

std::span<float> floats_of(Tensor& tensor) {
  return {reinterpret_cast<float*>(tensor.bytes.data()), tensor.bytes.size() / sizeof(float)};
}

// The honest update, times `factor`; the samples that are reported, times `samples`.
State changed_update(const State& upload, const State& broadcast, float factor, uint32_t samples) {
  State result;
  result.metadata = upload.metadata;
  for (Tensor tensor : upload.tensors()) {
    if (tensor.name == "samples") {
      const auto claimed = upload.scalar<uint32_t>("samples") * samples;
      result.add_scalar<uint32_t>("samples", claimed);
      continue;
    }
    if (tensor.dtype == Dtype::kF32 && broadcast.has(tensor.name)) {
      const auto start = broadcast.values<float>(tensor.name, tensor.shape);
      const std::span<float> values = floats_of(tensor);
      for (size_t i = 0; i < learned_elements(tensor); ++i)
        values[i] = start[i] + factor * (values[i] - start[i]);
    }
    result.add(std::move(tensor));
  }
  return result;
}

// Ranges as wide as floats go.
State lying_ranges(const State& upload) {
  State result;
  for (Tensor tensor : upload.tensors()) {
    if (tensor.name == "ranges") {
      const std::span<float> ends = floats_of(tensor);
      for (size_t i = 0; i < ends.size(); ++i) ends[i] = i < ends.size() / 2 ? -3e38f : 3e38f;
    }
    result.add(std::move(tensor));
  }
  return result;
}

State attacked(const Attack& attack, uint32_t round, const State& upload, const State& broadcast) {
  if (round == 0) return attack.name == "round-0" ? lying_ranges(upload) : upload;
  if (attack.name == "sign-flip") return changed_update(upload, broadcast, -1, 1);
  if (attack.name == "scaling") return changed_update(upload, broadcast, kScalingFactor, kClaimedTimes);
  if (attack.name == "backdoor") return changed_update(upload, broadcast, kBackdoorFactor, 1);
  return upload;
}

// Changes the uploads of hostile clients on their way to the server.
class HostileTransport : public Transport {
 public:
  HostileTransport(Transport& honest, const Attack& attack) : honest_(honest), attack_(attack) {}

  void run_round(uint32_t round, const Bytes& broadcast, const std::vector<uint32_t>& clients,
                 const std::function<void(ClientResult)>& receive) override {
    const State sent = decode(broadcast, "broadcast");
    honest_.run_round(round, broadcast, clients, [&](ClientResult result) {
      if (!attack_.hostile[result.client]) {
        receive(std::move(result));
        return;
      }
      result.state = attacked(attack_, round, *result.state, sent);
      try {
        receive(std::move(result));
      } catch (const Error& error) {
        // A server goes on without an update that it refuses.
        if (error.kind() != Error::Kind::kInput) throw;
      }
    });
  }
  std::optional<LocalClients> local_clients() const override { return honest_.local_clients(); }
  std::vector<uint32_t> save(uint32_t round) override { return honest_.save(round); }
  void write_saved() override { honest_.write_saved(); }
  void restore(uint32_t round, const std::vector<uint32_t>& needed) override {
    honest_.restore(round, needed);
  }

 private:
  Transport& honest_;
  const Attack& attack_;
};

// Of the test samples of other classes, the fraction that the trigger turns into the target.
double backdoor_success(const Model& model, const Dataset& test, const Trigger& trigger, ThreadPool& pool) {
  std::vector<uint32_t> others;
  for (uint32_t i = 0; i < test.size(); ++i) {
    if (test.labels[i] != kTarget) others.push_back(i);
  }
  Dataset marked = subset(test, others);
  for (size_t i = 0; i < marked.size(); ++i) trigger.put(&marked, i);
  const std::vector<uint16_t> found = predict(model, marked, pool);
  return static_cast<double>(std::count(found.begin(), found.end(), kTarget)) /
         static_cast<double>(found.size());
}

std::string honest_personal_accuracy(const RunSummary& summary, const std::vector<bool>& hostile) {
  double sum = 0;
  size_t count = 0;
  for (const ClientAccuracy& client : summary.client_results) {
    if (hostile[client.client] || !client.local_accuracy) continue;
    sum += *client.local_accuracy;
    ++count;
  }
  return count == 0 ? "" : fmt::format("{:.4f}", sum / static_cast<double>(count));
}

// Accuracy, personal accuracy of the honest clients, success of the trigger.
std::string run(const Config& recipe, const std::string& attack_name, double fraction,
                const fs::path& folder) {
  Experiment experiment = load_experiment(recipe, "", "hostile", ClientsAre::kSimulated);
  if (const char* const max = std::getenv("BITFED_MAX_SAMPLES"))
    shorten(std::stoul(max), experiment.seed, &experiment.partition);
  const Trigger trigger(experiment.train);
  const Attack attack{attack_name, choose_hostile(experiment.clients, fraction, experiment.seed)};
  poison(attack, trigger, experiment.partition, &experiment.train);
  RunFolderWriter writer(folder, experiment.recipe, RunFolderWriter::Existing::kRefuse);
  ThreadPool pool(1);
  const auto half = experiment.method->make_client();
  ClientStates states(writer.checkpoint() / "clients", experiment.partition.size());
  const EventSink silent = [](const Event& /*event*/) {};
  const auto honest = make_in_process_transport({experiment.seed, 0, {}}, *half, experiment.train,
                                                experiment.partition, states, pool, silent);
  HostileTransport transport(*honest, attack);
  FolderStore store(writer.checkpoint());
  const RunSummary summary =
      run_federation(experiment, transport, store,
                     {.pool = pool, .events = silent, .folder = folder, .checkpoint_seconds = 60});
  const ModelFile file = read_model_file((folder / "model.safetensors").string());
  return fmt::format("{:.4f},{},{:.4f}", summary.accuracy.value_or(0),
                     honest_personal_accuracy(summary, attack.hostile),
                     backdoor_success(*file.model, experiment.evaluation.test, trigger, pool));
}

bool has_line(const fs::path& file, const std::string& key) {
  std::ifstream lines(file);
  std::string line;
  while (std::getline(lines, line)) {
    if (line.starts_with(key)) return true;
  }
  return false;
}

int main_of(const std::vector<std::string>& arguments) {
  if (arguments.size() < 6) {
    fmt::print(stderr, "usage: hostile_clients RECIPE OUT.csv RULE ATTACK PERCENT SEED [KEY=VALUE...]\n");
    return 2;
  }
  const std::string& attack = arguments[3];
  if (std::find(std::begin(kAttacks), std::end(kAttacks), attack) == std::end(kAttacks))
    throw input_error("attack: found '{}', expected one of {}", attack, fmt::join(kAttacks, ", "));
  const std::string key = fmt::format("{},{},{},{},{},", fs::path(arguments[0]).stem().string(), arguments[2],
                                      attack, arguments[4], arguments[5]);
  if (has_line(arguments[1], key)) return 0;
  Config recipe = Config::load(arguments[0]);
  recipe.set("seed", arguments[5]);
  recipe.set_all(std::span(arguments).subspan(6));
  std::string folder = (fs::temp_directory_path() / "hostile-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) throw failure("{}: cannot be made", folder);
  const std::string figures = run(recipe, attack, std::stod(arguments[4]) / 100, fs::path(folder) / "run");
  fs::remove_all(folder);
  std::ofstream(arguments[1], std::ios::app) << key << figures << "\n";
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return main_of({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    fmt::print(stderr, "hostile_clients: {}\n", error.what());
    return 1;
  }
}
