#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bitfed/base/config.h"
#include "bitfed/base/hash/random.h"
#include "bitfed/data/dataset.h"
#include "bitfed/federated/privacy/differential_privacy.h"
#include "bitfed/federated/privacy/summed_update.h"
#include "bitfed/model/model.h"
#include "bitfed/model/state.h"

namespace bitfed {

class MaskedSum;
class ThreadPool;
struct Trainers;

// What a client gets for one round's work besides the broadcast and its data.
struct ClientContext {
  RandomStream random;                    // this client's own in this round
  std::function<bool()> stop;             // true: give up, by Error::Kind::kStopped
  std::function<void(double)> progress;   // the fraction done, from 0 to 1
  std::function<void(uint64_t)> trained;  // the number of samples just trained on, repetitions counted
  State kept = {};                        // what this client kept when it last took part; empty: nothing
  std::function<void(State)> keep = {};   // keeps this instead; it never leaves the client
};

// One client of a cohort, see ClientHalf::train_cohort.
struct CohortClient {
  const Dataset& samples;
  const ClientContext& context;
};

// Its upload; or the error that ended the work of this client alone.
struct CohortUpload {
  State upload = {};
  std::exception_ptr error = {};
};

// The half of a method that runs at the client, next to the data. The upload is a function of the broadcast,
// the samples, the random stream and what the client kept alone; many clients call one half at once, so it
// has no state.
class ClientHalf {
 public:
  virtual ~ClientHalf() = default;
  virtual State train(const State& broadcast, const Dataset& samples, const ClientContext& context) const = 0;

  // How many clients it can train in one step, as an accelerator can. More than 1: the simulator passes that
  // many clients at a time to train_cohort, in one call at a time.
  virtual size_t cohort() const { return 1; }

  // Trains several clients from one broadcast, at most cohort() of them. Returns one result per client, in
  // order: the same upload as train(), or that client's error. An exception fails all of them. By default
  // calls train() for each. `pool`: threads for what this machine does besides; null: the caller's alone.
  virtual std::vector<CohortUpload> train_cohort(const State& broadcast,
                                                 std::span<const CohortClient> clients,
                                                 ThreadPool* pool) const;

  // The client's own model that `kept` holds; nullptr where the method has no such models.
  virtual std::unique_ptr<Model> personal_model(const State& /*kept*/) const { return nullptr; }

  // Of a method whose server half takes means: what an upload adds to the sum over clients, given what it was
  // trained from.
  virtual ClientUpdate update_of(const State& broadcast, const State& upload) const;
};

// An upload at the server.
struct ArrivedUpload {
  uint32_t client = 0;
  const State& upload;
};

// The half that runs at the server. Uploads arrive one at a time and in any order; the result must not
// depend on it. An upload that does not fit is an input_error and leaves the half unchanged.
class ServerHalf {
 public:
  virtual ~ServerHalf() = default;

  // Threads that the half may use from now on, for as long as it lives.
  virtual void use(ThreadPool& /*pool*/) {}

  // True while the preparation (round 0, before the first round of training) is still to be done.
  virtual bool needs_preparation() const { return false; }

  virtual State broadcast(uint32_t round) const = 0;
  virtual void accept(uint32_t client, const State& upload) = 0;
  // Uploads that are there together: the same as accept() for each, in any order. After an error the round
  // cannot go on.
  virtual void accept_all(std::span<const ArrivedUpload> uploads) {
    for (const ArrivedUpload& arrived : uploads) accept(arrived.client, arrived.upload);
  }
  virtual void finish_round(uint32_t round) = 0;

  // For a method whose server needs no more than the mean of its clients' updates: what the clients of the
  // coming round add to it. Empty: it needs each upload by itself.
  virtual std::optional<SumParts> sum_parts() const { return std::nullopt; }
  // Instead of accept(): all clients of the round at once.
  virtual void accept_mean(const UpdateMean& mean);
  // Where uploads come masked: their sum. Null: they do not.
  virtual MaskedSum* masked_sum() { return nullptr; }

  // The model after the last finished round of training.
  virtual std::unique_ptr<Model> model() const = 0;
  // The same when it is called, once, by any thread, whatever happens to this half in between.
  virtual std::function<std::unique_ptr<Model>()> model_later() const {
    return [made = std::make_shared<std::unique_ptr<Model>>(model())] { return std::move(*made); };
  }

  // Between rounds: all that the next round needs, for checkpoints.
  virtual State save() const = 0;
  virtual void restore(const State& saved) = 0;

  // Whether a round of training is a sum that several processes can make. Then another half of the same
  // method, restored from the round's broadcast, may accept some of the uploads: take_part() is what it has
  // accepted since its last one, their number as the scalar "clients", and accept_part() of that is the same
  // as accepting those uploads here.
  virtual bool adds_up() const { return false; }
  virtual State take_part() { return {}; }
  virtual void accept_part(const State& /*part*/) {}

  // What a reader of the result should know: what was dropped, where the method differs from its paper.
  virtual std::vector<std::string> notes() const { return {}; }

  // The size of an upload without coding, as the method's paper counts it; empty: the paper gives none.
  virtual std::optional<uint64_t> raw_upload_bytes() const { return std::nullopt; }
};

class Method {
 public:
  virtual ~Method() = default;
  virtual std::unique_ptr<ClientHalf> make_client() const = 0;
  virtual std::unique_ptr<ServerHalf> make_server() const = 0;

  // Names the client half and the keys of [method] that change its uploads. Methods with the same client_key
  // can share uploads.
  virtual std::string client_key() const = 0;

  virtual uint32_t default_rounds() const = 0;
  virtual uint32_t max_rounds() const { return UINT32_MAX; }
};

// `prototype` is a data set without samples: shape, columns, class names.
struct MethodContext {
  const Config& recipe;
  const Dataset& prototype;
  uint64_t seed = 0;
  const Trainers* trainers = nullptr;  // of the device that clients train networks on; null: the CPU's
  uint32_t clients = 0;                // the most that one round can have; 0: not known
  Sampling sampling = {};              // of the federation, for noise; its rounds are the recipe's
  bool served = false;                 // clients are real: noise comes from the system, not from the seed
};

struct MethodEntry {
  std::string_view name;
  std::string_view description;  // one line
  std::unique_ptr<ClientHalf> (*make_client)(const MethodContext&);
  std::unique_ptr<Method> (*make)(const MethodContext&);
};

// The one list of methods, in the order they are shown.
const std::vector<MethodEntry>& methods();

// The method that the recipe's [method] names.
std::unique_ptr<Method> make_method(const MethodContext& context);

// Its client half alone. A device's program, which calls this and not make_method, contains no server halves.
// `noise`: where that of a private update comes from, if clients add it; empty: the seed, which is public.
std::unique_ptr<ClientHalf> make_client_half(const MethodContext& context, NoiseSource noise = {});

}  // namespace bitfed
