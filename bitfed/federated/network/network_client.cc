#include <algorithm>
#include <mutex>
#include <numeric>

#include "bitfed/base/error.h"
#include "bitfed/base/pool_or_caller.h"
#include "bitfed/federated/network/network_halves.h"

namespace bitfed {
namespace {

Error diverged(float rate) {
  return failure("training diverged, its numbers are no longer finite: lower client.learning_rate (now {})",
                 rate);
}

// What a broadcast says beside the parameters.
struct Announcement {
  const State& broadcast;
  uint32_t round = 0;
  float rate = 0;
};

Announcement read_announcement(const State& broadcast, uint32_t rounds) {
  const Announcement announced{broadcast, broadcast.scalar<uint32_t>("round"),
                               broadcast.scalar<float>("learning_rate")};
  if (!(announced.rate > 0))
    throw input_error("tensor 'learning_rate': found {}, expected a number above 0", announced.rate);
  if (announced.round < 1 || announced.round > rounds)
    throw input_error("tensor 'round': found {}, expected 1 to {}", announced.round, rounds);
  return announced;
}

// One client of a cohort at work: its order of samples, where it is in them, and its training.
class ClientAtWork {
 public:
  ClientAtWork(const NetworkTraining& training, const NetworkRounds& rounds, const Announcement& announced,
               const CohortClient& client, Trainer* trainer, size_t index)
      : rounds_(rounds),
        announced_(announced),
        samples_(client.samples),
        context_(client.context),
        trainer_(*trainer),
        index_(index),
        shuffling_(context_.random.substream(0)),
        moving_(context_.random.substream(1)),
        order_(samples_.size()),
        is_plain_(!training.train) {
    std::iota(order_.begin(), order_.end(), 0u);
    trainer_.begin_round(index, context_.random.substream(3));
    const LocalContext local{.trainer = trainer,
                             .client = index,
                             .steps = rounds.work.steps(samples_.size()),
                             .round = announced.round,
                             .rate = announced.rate,
                             .random = context_.random.substream(2),
                             .broadcast = &announced.broadcast,
                             .own = &context_};
    training_ =
        training.train ? training.train(local) : std::make_unique<PlainDescent>(local, training.sends);
  }

  bool is_done() const { return epoch_ == rounds_.work.epochs; }
  uint32_t epoch() const { return epoch_; }
  std::span<const uint16_t> labels() const { return labels_; }

  void load_batch() {
    if (context_.stop && context_.stop()) throw Error(Error::Kind::kStopped, "stopped");
    if (first_ == 0) begin_epoch();
    labels_.resize(std::min<size_t>(rounds_.work.batch, order_.size() - first_));
    for (size_t i = 0; i < labels_.size(); ++i) {
      const uint32_t sample = order_[first_ + i];
      trainer_.load(index_, i, pixels_of(sample));
      labels_[i] = samples_.labels[sample];
    }
    training_->before_step();
    if (is_plain_) trainer_.announce(index_, descent());
  }

  void step() {
    training_->descend(descent());
    first_ += labels_.size();
    labels_.clear();
    if (first_ < order_.size()) return;
    if (trainer_.diverged(index_)) throw diverged(announced_.rate);
    first_ = 0;
    ++epoch_;
    context_.trained(samples_.size());
    context_.progress(static_cast<double>(epoch_) / rounds_.work.epochs);
  }

  // From the parameters after the round.
  State upload(const NetworkParameters& parameters) {
    for (const std::vector<float>& values : parameters) {
      if (!ExactMean::fits(values)) throw diverged(announced_.rate);
    }
    State upload = training_->upload(parameters);
    upload.add_scalar<uint32_t>("samples", static_cast<uint32_t>(samples_.size()));
    return upload;
  }

 private:
  Descent descent() const {
    return {.rate = announced_.rate,
            .momentum = static_cast<float>(rounds_.momentum),
            .decay = static_cast<float>(rounds_.decay),
            .adam = rounds_.adam};
  }

  void begin_epoch() {
    const double epochs = announced_.round - 1 + static_cast<double>(epoch_) / rounds_.work.epochs;
    trainer_.begin_epoch(index_, epochs / rounds_.rounds);
    shuffling_.shuffle(std::span(order_));
  }

  std::span<const uint8_t> pixels_of(uint32_t sample) {
    const std::span<const uint8_t> pixels = samples_.image(sample);
    if (rounds_.augmentation == Augmentation::kNone) return pixels;
    moved_.resize(pixels.size());
    move_image(samples_, pixels, ImageMove::draw(&moving_), moved_);
    return moved_;
  }

  const NetworkRounds& rounds_;
  Announcement announced_;
  const Dataset& samples_;
  const ClientContext& context_;
  Trainer& trainer_;
  size_t index_;
  RandomStream shuffling_, moving_;
  std::vector<uint32_t> order_;
  bool is_plain_;  // steps are PlainDescent's
  std::unique_ptr<LocalTraining> training_;
  uint32_t epoch_ = 0;
  size_t first_ = 0;  // of the epoch, the samples trained on
  std::vector<uint16_t> labels_;
  std::vector<uint8_t> moved_;
};

// Trainers that wait for the next client: with small clients, making one would take as long as the training.
class IdleTrainers {
 public:
  struct Entry {
    size_t batch = 0;
    std::unique_ptr<Trainer> trainer;
  };

  // One for batches of this size; empty: there is none. One of another size makes way for the one that the
  // caller is about to make.
  std::unique_ptr<Trainer> take(size_t batch) {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) return nullptr;
    const auto fits = [&](const Entry& entry) { return entry.batch == batch; };
    const auto found = std::find_if(idle_.begin(), idle_.end(), fits);
    std::swap(found == idle_.end() ? idle_.front() : *found, idle_.back());
    Entry entry = std::move(idle_.back());
    idle_.pop_back();
    return entry.batch == batch ? std::move(entry.trainer) : nullptr;
  }
  void put(Entry entry) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(entry));
  }

 private:
  std::mutex mutex_;
  std::vector<Entry> idle_;
};

// Clients of a cohort train in lockstep, each with its own batches; one that has done its epoch, or failed,
// waits.
class Client : public ClientHalf {
 public:
  Client(NetworkTraining training, const NetworkRounds& rounds, Trainers trainers)
      : training_(std::move(training)), rounds_(rounds), trainers_(std::move(trainers)) {
    if (!rounds.summed) return;
    Network network = make_trained_network(training_.network, 1, RandomStream({.purpose = "replaced"}));
    shapes_ = shapes_of(network);
  }

  ClientUpdate update_of(const State& broadcast, const State& upload) const override {
    const NetworkParameters before = read_parameters(shapes_, broadcast);
    const Uploaded after = read_upload(training_, shapes_, before, upload);
    ClientUpdate update{sum_parts_of(training_, shapes_), {}, upload.scalar<uint32_t>("samples")};
    for (size_t p = 0; p < shapes_.size(); ++p) {
      if (training_.sends && !training_.sends(shapes_[p])) continue;
      for (size_t i = 0; i < before[p].size(); ++i)
        update.values.push_back(static_cast<double>(after.values[p][i]) - before[p][i]);
    }
    return update;
  }

  State train(const State& broadcast, const Dataset& samples, const ClientContext& context) const override {
    const CohortClient client{samples, context};
    CohortUpload result = std::move(train_cohort(broadcast, {&client, 1}, nullptr)[0]);
    if (result.error) std::rethrow_exception(result.error);
    return std::move(result.upload);
  }

  size_t cohort() const override { return trainers_.cohort; }

  std::vector<CohortUpload> train_cohort(const State& broadcast, std::span<const CohortClient> clients,
                                         ThreadPool* pool) const override {
    const Announcement announced = read_announcement(broadcast, rounds_.rounds);
    const size_t batch = batch_of(clients);
    // A device's memory may hold no second trainer.
    std::unique_ptr<Trainer> trainer = cohort() == 1 ? idle_.take(batch) : nullptr;
    try {
      if (!trainer) trainer = trainers_.make(training_.network, clients.size(), batch);
    } catch (const TrainerTooLarge&) {
      if (clients.size() == 1) throw;
      // A cohort of half the size, and then the other half.
      const size_t half = clients.size() / 2;
      std::vector<CohortUpload> uploads = train_cohort(broadcast, clients.first(half), pool);
      for (CohortUpload& upload : train_cohort(broadcast, clients.subspan(half), pool))
        uploads.push_back(std::move(upload));
      return uploads;
    }
    trainer->set_parameters(read_parameters(trainer->shapes(), broadcast));
    std::vector<CohortUpload> results(clients.size());
    std::vector<std::unique_ptr<ClientAtWork>> at_work(clients.size());
    const auto guarded = [&](size_t i, const auto& work) {
      if (results[i].error) return;
      try {
        work(i);
      } catch (...) {
        results[i].error = std::current_exception();
        at_work[i].reset();
      }
    };
    for (size_t i = 0; i < clients.size(); ++i) {
      guarded(i, [&](size_t client) {
        at_work[client] = std::make_unique<ClientAtWork>(training_, rounds_, announced, clients[client],
                                                         trainer.get(), client);
      });
    }
    // Epochs begin together, so that a device does for all clients at once what an epoch begins with. A
    // client with fewer batches waits; the round takes as many steps as its largest client all the same.
    uint32_t epoch = 0;
    const auto takes_part = [&](size_t i) { return at_work[i] != nullptr && at_work[i]->epoch() == epoch; };
    std::vector<std::span<const uint16_t>> labels(clients.size());
    // A method whose clients change the parameters themselves works longer at that than a device at a step.
    ThreadPool* const threads = training_.train ? pool : nullptr;
    while (epoch < rounds_.work.epochs) {
      size_t busy = 0;
      for_each(threads, clients.size(), [&](size_t i) {
        if (takes_part(i)) guarded(i, [&](size_t client) { at_work[client]->load_batch(); });
      });
      for (size_t i = 0; i < clients.size(); ++i) {
        labels[i] = takes_part(i) ? at_work[i]->labels() : std::span<const uint16_t>();
        busy += takes_part(i) ? 1 : 0;
      }
      if (busy == 0) {
        ++epoch;
        continue;
      }
      trainer->differentiate(labels);
      for_each(threads, clients.size(), [&](size_t i) {
        if (takes_part(i)) guarded(i, [&](size_t client) { at_work[client]->step(); });
      });
    }
    // The trainer ends one client's round at a time; the rest is each client's own.
    for (size_t i = 0; i < clients.size(); ++i)
      guarded(i, [&](size_t client) { trainer->end_round(client); });
    std::vector<NetworkParameters> trained(clients.size());
    for_each(pool, clients.size(), [&](size_t i) {
      guarded(i, [&](size_t client) { trained[client] = trainer->parameters(client); });
    });
    for (size_t i = 0; i < clients.size(); ++i) {
      guarded(i, [&](size_t client) {
        if (trainer->diverged(client)) throw diverged(announced.rate);
      });
    }
    for_each(pool, clients.size(), [&](size_t i) {
      const NetworkParameters own = std::move(trained[i]);
      guarded(i, [&](size_t client) { results[client].upload = at_work[client]->upload(own); });
    });
    at_work.clear();
    if (cohort() == 1) idle_.put({batch, std::move(trainer)});
    return results;
  }

 private:
  size_t batch_of(std::span<const CohortClient> clients) const {
    size_t largest = 0;
    for (const CohortClient& client : clients) largest = std::max(largest, client.samples.size());
    return std::min<size_t>(rounds_.work.batch, largest);
  }

  NetworkTraining training_;
  NetworkRounds rounds_;
  Trainers trainers_;
  ParameterShapes shapes_;  // only where updates are summed
  mutable IdleTrainers idle_;
};

}  // namespace

std::unique_ptr<ClientHalf> make_client_half(NetworkTraining training, const NetworkRounds& rounds,
                                             Trainers trainers) {
  return std::make_unique<Client>(std::move(training), rounds, std::move(trainers));
}

}  // namespace bitfed
