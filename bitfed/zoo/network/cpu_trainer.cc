#include <cassert>
#include <cmath>

#include "bitfed/nn/layers/load_pixels.h"
#include "bitfed/zoo/network/network_builder.h"
#include "bitfed/zoo/network/trainer.h"

namespace bitfed {
namespace {

class CpuTrainer : public Trainer {
 public:
  CpuTrainer(const TrainedNetwork& network, size_t clients, size_t batch)
      : inputs_(input_table(network.spec)), diverged_(clients) {
    // The parameters are replaced before anything is trained.
    for (size_t i = 0; i < clients; ++i)
      networks_.push_back(make_trained_network(network, batch, RandomStream({.purpose = "replaced"})));
    shapes_ = shapes_of(networks_[0]);
  }

  size_t clients() const override { return networks_.size(); }
  const ParameterShapes& shapes() const override { return shapes_; }

  void set_parameters(const NetworkParameters& parameters) override {
    for (Network& network : networks_) assign_parameters(parameters, &network);
  }
  NetworkParameters parameters(size_t client) const override { return parameters_of(networks_[client]); }
  void set_values(size_t client, size_t parameter, std::span<const float> values) override {
    networks_[client].parameters()[parameter]->assign(values);
  }
  void get_values(size_t client, size_t parameter, std::vector<float>* values) const override {
    *values = networks_[client].parameters()[parameter]->to_vector();
  }
  void get_gradient(size_t client, size_t parameter, std::vector<float>* gradient) const override {
    networks_[client].parameters()[parameter]->copy_gradient(gradient);
  }
  void add_to_gradient(size_t client, size_t parameter, std::span<const float> values) override {
    networks_[client].parameters()[parameter]->add_to_gradient(values);
  }

  void begin_round(size_t client, const RandomStream& random) override {
    networks_[client].seed(random);
    networks_[client].set_anchor();
    networks_[client].stop();
    diverged_[client] = 0;
  }
  void begin_epoch(size_t client, double progress) override { networks_[client].begin_epoch(progress); }
  void end_round(size_t client) override { networks_[client].fuse(); }

  void load(size_t client, size_t index, std::span<const uint8_t> pixels) override {
    load_pixels(inputs_, pixels, index, &networks_[client].input());
  }
  void announce(size_t client, const Descent& descent) override { networks_[client].announce(descent); }
  void differentiate(std::span<const std::span<const uint16_t>> labels) override {
    assert(labels.size() == networks_.size());
    for (size_t i = 0; i < labels.size(); ++i) {
      if (!labels[i].empty() && !std::isfinite(networks_[i].differentiate(labels[i]))) diverged_[i] = 1;
    }
  }
  bool diverged(size_t client) override { return diverged_[client] != 0; }
  void descend(size_t client, const Descent& descent) override { networks_[client].descend(descent); }

 private:
  std::vector<float> inputs_;              // of every value of a pixel
  mutable std::vector<Network> networks_;  // one per client; they hand out their parameters to be changed
  ParameterShapes shapes_;
  std::vector<uint8_t> diverged_;
};

}  // namespace

void Trainer::add_to_gradient(size_t /*client*/, size_t /*parameter*/, std::span<const float> /*values*/) {
  throw failure("this device cannot change gradients");
}

std::unique_ptr<Trainer> make_cpu_trainer(const TrainedNetwork& network, size_t clients, size_t batch) {
  return std::make_unique<CpuTrainer>(network, clients, batch);
}

Network make_trained_network(const TrainedNetwork& network, size_t batch, const RandomStream& random) {
  return network.rotated ? make_rotated_network(network.spec, *network.rotated, batch, random)
                         : make_network(network.spec, batch, random);
}

}  // namespace bitfed
