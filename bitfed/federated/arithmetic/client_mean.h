#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bitfed/base/config.h"
#include "bitfed/federated/arithmetic/exact_mean.h"
#include "bitfed/federated/arithmetic/geometric_median.h"
#include "bitfed/model/state.h"

namespace bitfed {

// How a server combines the parameters of its clients, and how far it trusts each client.
struct Combining {
  enum class Kind {
    kMean,             // sample-weighted
    kMedian,           // of each parameter by itself, all clients with equal weight
    kTrimmedMean,      // likewise, without the largest and smallest values
    kGeometricMedian,  // of whole models, all clients with equal weight
  };
  Kind kind = Kind::kMean;
  double trim = 0.1;                  // fraction of the clients that is dropped at each end
  double norm_bound = 0;              // a client's update is clipped to this norm; 0: not clipped
  uint32_t max_samples = UINT32_MAX;  // upper limit of a client's weight, whatever it reports

  bool is_bounded() const { return kind != Kind::kMean || norm_bound > 0 || max_samples != UINT32_MAX; }
};

// The median or trimmed mean of one value per client; it sorts `values`.
float middle_of(const Combining& combining, std::vector<float>* values);

// How the values of the preparation round (ranges, quantiles) are combined. They have no length that a norm
// bound could shorten, and one value of ±3e38 ruins a mean whatever its weight: a recipe that bounds its
// clients in any other way has the median of each.
Combining preparation_combining(const Combining& combining);

// Reads the recipe's federation.combine, trim, norm_bound and max_samples.
Combining read_combining(const Config& recipe);

// A part of a tensor, as large as is worth a thread; and the parts that make up all of a model.
struct ValueRange {
  size_t tensor = 0;
  size_t begin = 0;
  size_t end = 0;
};
std::vector<ValueRange> ranges_of(const TensorViews& values);
// Null where those of so many clients are too few to wake a thread for.
ThreadPool* pool_for(const TensorViews& values, size_t clients, ThreadPool* pool);

// Combines the parameters of the clients of one round, independent of the order of arrival. The mean needs
// memory for one model; the other rules need all clients' parameters at once.
class ClientMean {
 public:
  // `learned`: per tensor, whether its update counts for the norm that is bounded. Running statistics do not
  // count, since variances would dominate the weights; they are scaled with the rest.
  ClientMean(const Combining& combining, std::vector<bool> learned)
      : combining_(combining), learned_(std::move(learned)) {}

  // Threads for adding and the mean; without them, the caller's alone.
  void use(ThreadPool* pool) { pool_ = pool; }

  // `start`: the parameters that the client received. `values` must have the same shape and satisfy
  // ExactMean::fits; `samples` is at least 1. An input_error leaves the object unchanged.
  void add(uint32_t client, TensorValues values, uint32_t samples, const TensorValues& start);
  // The same for several clients at once, without copies where none are needed.
  struct Client {
    uint32_t client = 0;
    TensorViews values = {};
    uint32_t samples = 0;
  };
  void add_all(std::span<const Client> clients, const TensorValues& start);

  // Instead: the mean of all clients of the round, which was made elsewhere.
  void set(TensorValues mean, uint64_t samples, size_t clients);

  // Means are sums, which several processes can make: what one has added, and adding that to this one's. An
  // input_error for what does not fit.
  bool adds_up() const { return combining_.kind == Combining::Kind::kMean; }
  State take_part();  // resets the object
  void add_part(const State& part, const TensorValues& start);

  size_t clients() const { return clients_; }
  uint64_t samples() const { return samples_; }
  // The result of at least one client; resets the object.
  TensorValues take();
  // With a norm bound: the norms of the updates of the last round, to help choose the bound.
  std::vector<std::string> notes() const;

 private:
  void clip(const TensorValues& start, TensorValues* values);
  void add_to_means(std::span<const Client> clients);
  void count(uint32_t samples);
  TensorValues middle() const;

  Combining combining_;
  std::vector<bool> learned_;
  std::vector<ExactMean> means_;
  std::map<uint32_t, TensorValues> all_;
  std::optional<TensorValues> given_;
  std::vector<double> norms_;       // of the updates, in the order of arrival
  std::vector<double> last_norms_;  // of the last take(), sorted
  size_t clients_ = 0;
  uint64_t samples_ = 0;
  ThreadPool* pool_ = nullptr;
};

}  // namespace bitfed
