#include "bitfed/base/error.h"
#include "bitfed/base/pool_or_caller.h"
#include "bitfed/federated/network/network_halves.h"

namespace bitfed {
namespace {

// Of each parameter, whether it is learned.
std::vector<bool> learned(const ParameterShapes& shapes) {
  std::vector<bool> result;
  for (const ParameterShape& shape : shapes) result.push_back(!shape.statistic);
  return result;
}

class Server : public ServerHalf {
 public:
  Server(const NetworkMethod& method, const NetworkRounds& rounds)
      : Server(method, rounds, RandomStream({rounds.seed, "network"})) {}

  State broadcast(uint32_t round) const override {
    State state;
    add_parameters(shapes_, *global_, &state);
    state.add_scalar("learning_rate", static_cast<float>(rounds_.rate * rounds_.schedule.factor(round)));
    state.add_scalar<uint32_t>("round", round);
    return state;
  }

  void use(ThreadPool& pool) override {
    pool_ = &pool;
    mean_.use(&pool);
  }

  void accept(uint32_t client, const State& upload) override {
    const ArrivedUpload one{client, upload};
    accept_all({&one, 1});
  }

  // All values are checked before any is added.
  void accept_all(std::span<const ArrivedUpload> uploads) override {
    if (uploads.empty()) return;
    std::vector<Uploaded> read(uploads.size());
    std::vector<ClientMean::Client> clients(uploads.size());
    for_each(pool_, uploads.size(), [&](size_t i) {
      const State& upload = uploads[i].upload;
      const auto samples = upload.scalar<uint32_t>("samples");
      if (samples == 0)
        throw input_error("{}: tensor 'samples': found 0, expected at least 1", upload.source());
      read[i] = read_upload(method_, shapes_, *global_, upload);
      clients[i] = {uploads[i].client, read[i].values, samples};
    });
    const std::vector<ValueRange> ranges = ranges_of(clients[0].values);
    for_each(pool_for(clients[0].values, clients.size(), pool_), clients.size() * ranges.size(),
             [&](size_t i) {
               const size_t client = i / ranges.size();
               const auto& [tensor, begin, end] = ranges[i % ranges.size()];
               check(tensor, clients[client].values[tensor].subspan(begin, end - begin),
                     uploads[client].upload.source());
             });
    mean_.add_all(clients, *global_);
  }

  std::optional<SumParts> sum_parts() const override { return sum_parts_of(method_, shapes_); }

  void accept_mean(const UpdateMean& mean) override {
    NetworkParameters parameters = *global_;
    const double* change = mean.values.data();
    for (size_t p = 0; p < shapes_.size(); ++p) {
      if (method_.sends && !method_.sends(shapes_[p])) continue;
      const bool variance = shapes_[p].name.ends_with(".variance");
      for (float& value : parameters[p]) {
        const auto changed = static_cast<float>(value + *change++);
        value = variance ? mean.variance(changed, value) : changed;
      }
    }
    mean_.set(std::move(parameters), mean.weight, mean.clients);
  }

  void finish_round(uint32_t /*round*/) override {
    if (mean_.clients() == 0) return;  // nobody answered
    set_global(mean_.take());
    if (rounds_.ema > 0) update_ema();
  }

  bool adds_up() const override { return mean_.adds_up(); }
  State take_part() override { return mean_.take_part(); }
  void accept_part(const State& part) override { mean_.add_part(part, *global_); }

  std::unique_ptr<Model> model() const override { return model_later()(); }
  std::function<std::unique_ptr<Model>()> model_later() const override {
    if (ema_.empty()) return [deploy = method_.deploy, parameters = global_] { return deploy(*parameters); };
    return [deploy = method_.deploy, settle = method_.settle, parameters = ema_]() mutable {
      if (settle) settle(&parameters);
      return deploy(parameters);
    };
  }

  State save() const override {
    State state;
    add_parameters(shapes_, *global_, &state);
    if (!ema_.empty()) add_parameters(ema_shapes(), ema_, &state);
    return state;
  }

  // Also from a broadcast, which has no moving average.
  void restore(const State& saved) override {
    global_ = std::make_shared<const NetworkParameters>(read_parameters(shapes_, saved));
    ema_.clear();
    if (rounds_.ema > 0 && saved.has(ema_shapes()[0].name)) ema_ = read_parameters(ema_shapes(), saved);
  }

  std::vector<std::string> notes() const override {
    std::vector<std::string> notes = mean_.notes();
    notes.insert(notes.begin(), method_.notes.begin(), method_.notes.end());
    return notes;
  }

 private:
  Server(const NetworkMethod& method, const NetworkRounds& rounds, const RandomStream& random)
      : Server(method, rounds, random, make_trained_network(method.network, 1, random)) {}
  Server(const NetworkMethod& method, const NetworkRounds& rounds, const RandomStream& random,
         Network network)
      : method_(method),
        rounds_(rounds),
        shapes_(shapes_of(network)),
        mean_(rounds.combining, learned(shapes_)) {
    NetworkParameters parameters = parameters_of(network);
    if (method_.initialise) method_.initialise(random, shapes_, &parameters);
    set_global(std::move(parameters));
  }

  void set_global(NetworkParameters parameters) {
    if (method_.settle) method_.settle(&parameters);
    global_ = std::make_shared<const NetworkParameters>(std::move(parameters));
  }

  // Of a part of a parameter.
  void check(size_t parameter, std::span<const float> values, const std::string& source) const {
    const std::string& name = shapes_[parameter].name;
    const bool fits = ExactMean::fits(values);
    if (!fits || name.ends_with(".variance")) check_values(name, values, source);
    if (!fits) throw input_error("{}: found a parameter beyond ±{}", source, ExactMean::kLargest);
  }

  // By the first round's model alone, and then by a part of every new one.
  void update_ema() {
    if (ema_.empty()) {
      ema_ = *global_;
      return;
    }
    for_each(pool_, ema_.size(), [&](size_t p) {
      for (size_t i = 0; i < ema_[p].size(); ++i)
        ema_[p][i] = static_cast<float>(rounds_.ema * ema_[p][i] + (1 - rounds_.ema) * (*global_)[p][i]);
    });
  }

  ParameterShapes ema_shapes() const {
    ParameterShapes shapes = shapes_;
    for (ParameterShape& shape : shapes) shape.name = "ema." + shape.name;
    return shapes;
  }

  NetworkMethod method_;
  NetworkRounds rounds_;
  ParameterShapes shapes_;
  // The present model. Never changed, so that an evaluation beside the next round shares it.
  std::shared_ptr<const NetworkParameters> global_;
  NetworkParameters ema_;  // empty before the first round, and without [federation] ema
  ClientMean mean_;
  ThreadPool* pool_ = nullptr;
};

}  // namespace

std::unique_ptr<ServerHalf> make_server_half(const NetworkMethod& method, const NetworkRounds& rounds) {
  return std::make_unique<Server>(method, rounds);
}

}  // namespace bitfed
