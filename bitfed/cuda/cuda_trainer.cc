#include "bitfed/cuda/cuda_trainer.h"

#include <cstring>
#include <memory>
#include <mutex>

#include "bitfed/base/error.h"
#include "bitfed/cuda/cohort_network.h"
#include "bitfed/nn/rotated/rotated_weights.h"

namespace bitfed::cuda {
namespace {

// Networks that no trainer uses at present. Making one takes longer than a round of a small network, so they
// stay until their memory is needed. Several runs may share a pool.
class NetworkPool {
 public:
  // Throws OutOfMemory, at once where such a cohort did not fit before: rounds with smaller cohorts neither
  // try it again nor lose their kept networks to the attempt.
  std::unique_ptr<CohortNetwork> take(const TrainedNetwork& network, size_t clients, size_t batch) {
    if (auto kept = find(network, clients, batch)) {
      kept->stream().synchronise();  // a trainer that failed may have left work
      return kept;
    }
    refuse_known(network, clients, batch);
    try {
      return make(network, clients, batch);
    } catch (const OutOfMemory&) {
      clear();
    }
    try {
      return make(network, clients, batch);
    } catch (const OutOfMemory& out) {
      const std::lock_guard lock(mutex_);
      too_large_.push_back({network, clients, batch, in_use_, out});
      throw;
    }
  }
  void give_back(std::unique_ptr<CohortNetwork> network) {
    const std::lock_guard lock(mutex_);
    --in_use_;
    kept_.push_back(std::move(network));
    if (kept_.size() > kMost) kept_.erase(kept_.begin());
  }

 private:
  static constexpr size_t kMost = 8;

  // A cohort that did not fit while so many other networks were in use.
  struct TooLarge {
    TrainedNetwork network;
    size_t clients;
    size_t batch;
    size_t in_use;
    OutOfMemory out;
  };

  void refuse_known(const TrainedNetwork& network, size_t clients, size_t batch) {
    const std::lock_guard lock(mutex_);
    for (const TooLarge& known : too_large_) {
      if (clients >= known.clients && batch >= known.batch && in_use_ >= known.in_use &&
          network == known.network)
        throw known.out;
    }
  }

  std::unique_ptr<CohortNetwork> make(const TrainedNetwork& network, size_t clients, size_t batch) {
    auto made = std::make_unique<CohortNetwork>(network, clients, batch);
    const std::lock_guard lock(mutex_);
    ++in_use_;
    return made;
  }

  std::unique_ptr<CohortNetwork> find(const TrainedNetwork& network, size_t clients, size_t batch) {
    const std::lock_guard lock(mutex_);
    for (auto& kept : kept_) {
      if (kept->clients() != clients || kept->batch() != batch || kept->network() != network) continue;
      std::swap(kept, kept_.back());
      auto found = std::move(kept_.back());
      kept_.pop_back();
      ++in_use_;
      return found;
    }
    return nullptr;
  }
  void clear() {
    const std::lock_guard lock(mutex_);
    kept_.clear();
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<CohortNetwork>> kept_;
  std::vector<TooLarge> too_large_;
  size_t in_use_ = 0;  // networks that trainers have
};

// What the functions of Trainer ask of single clients is collected, and done for all of them when a result is
// needed.
class CudaTrainer : public Trainer {
 public:
  CudaTrainer(int device, std::shared_ptr<NetworkPool> pool, std::unique_ptr<CohortNetwork> network)
      : device_(device),
        pool_(std::move(pool)),
        network_(std::move(network)),
        surrogates_(network_->clients(), surrogate_of_weights(0)),
        descents_(network_->clients()),
        batches_(network_->next_batches()) {}
  ~CudaTrainer() override { pool_->give_back(std::move(network_)); }
  CudaTrainer(const CudaTrainer&) = delete;
  CudaTrainer& operator=(const CudaTrainer&) = delete;

  size_t clients() const override { return network_->clients(); }
  const ParameterShapes& shapes() const override { return network_->shapes(); }

  void set_parameters(const NetworkParameters& parameters) override {
    finish();
    network_->set_all(parameters);
  }
  NetworkParameters parameters(size_t client) const override {
    finish_on_any_thread();
    return network_->get_all(client);
  }
  void set_values(size_t client, size_t parameter, std::span<const float> values) override {
    finish_on_any_thread();
    network_->set(client, parameter, values);
  }
  void get_values(size_t client, size_t parameter, std::vector<float>* values) const override {
    finish_on_any_thread();
    *values = network_->get(client, parameter, false);
  }
  void get_gradient(size_t client, size_t parameter, std::vector<float>* gradient) const override {
    *gradient = network_->get(client, parameter, true);
  }

  void begin_round(size_t client, const RandomStream& random) override {
    network_->seed_dropout(client, random);
    network_->clear_velocity(client);
    network_->clear_diverged(client);
    anchors_ |= bit(client);
  }
  void begin_epoch(size_t client, double progress) override {
    const std::lock_guard lock(mutex_);
    surrogates_[client] = surrogate_of_weights(progress);
    searches_ |= bit(client);
  }
  void end_round(size_t client) override { fuses_ |= bit(client); }

  void load(size_t client, size_t index, std::span<const uint8_t> pixels) override {
    std::memcpy(batches_.pixels + (client * network_->batch() + index) * network_->image_bytes(),
                pixels.data(), pixels.size());
  }
  void differentiate(std::span<const std::span<const uint16_t>> labels) override {
    finish();
    for (size_t client = 0; client < labels.size(); ++client) {
      batches_.images[client] = static_cast<uint32_t>(labels[client].size());
      std::copy(labels[client].begin(), labels[client].end(), batches_.labels + client * network_->batch());
    }
    network_->differentiate();
    batches_ = network_->next_batches();
  }
  bool diverged(size_t client) override {
    const std::lock_guard lock(mutex_);
    return network_->diverged(client);
  }
  void descend(size_t client, const Descent& descent) override {
    const std::lock_guard lock(mutex_);
    descents_[client] = {descent.rate, descent.momentum, descent.decay, 1};
    descends_ = true;
  }

 private:
  static uint64_t bit(size_t client) { return uint64_t{1} << client; }

  void finish_on_any_thread() const {
    const std::lock_guard lock(mutex_);
    use_device(device_);
    finish();
  }

  // In the order in which a client goes through them.
  void finish() const {
    if (descends_) {
      network_->descend(descents_);
      descents_.assign(descents_.size(), {});
      descends_ = false;
    }
    if (fuses_ != 0) network_->fuse(std::exchange(fuses_, 0));
    if (anchors_ != 0) network_->set_anchor(std::exchange(anchors_, 0));
    if (searches_ != 0) network_->search_rotations(std::exchange(searches_, 0), surrogates_);
  }

  int device_;
  std::shared_ptr<NetworkPool> pool_;
  std::unique_ptr<CohortNetwork> network_;
  mutable std::mutex mutex_;  // of what is collected
  mutable uint64_t anchors_ = 0;
  mutable uint64_t searches_ = 0;
  mutable uint64_t fuses_ = 0;
  mutable bool descends_ = false;
  std::vector<Surrogate> surrogates_;
  mutable std::vector<ClientDescent> descents_;
  CohortNetwork::Batches batches_;
};

}  // namespace

Trainers make_trainers(size_t cohort, int device) {
  Trainers trainers;
  trainers.cohort = cohort;
  trainers.plain = true;
  trainers.tf32 = true;
  trainers.make = [device, pool = std::make_shared<NetworkPool>()](const TrainedNetwork& network,
                                                                   size_t clients,
                                                                   size_t batch) -> std::unique_ptr<Trainer> {
    use_device(device);
    try {
      return std::make_unique<CudaTrainer>(device, pool, pool->take(network, clients, batch));
    } catch (const OutOfMemory& out) {
      throw TrainerTooLarge(
          fmt::format("GPU: found no {} bytes of memory for a cohort of {} clients", out.bytes, clients));
    }
  };
  return trainers;
}

}  // namespace bitfed::cuda
