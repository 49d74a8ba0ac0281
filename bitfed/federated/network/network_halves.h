#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "bitfed/data/augmentation.h"
#include "bitfed/federated/arithmetic/client_mean.h"
#include "bitfed/federated/network/network_method.h"
#include "bitfed/federated/network/rate_schedule.h"

// The halves of a NetworkMethod, and what they share.

namespace bitfed {

// What a recipe says of the rounds.
struct NetworkRounds {
  LocalWork work;
  double rate = 0.1;
  bool adam = false;
  double momentum = 0;
  double decay = 0;  // of convolutions' weights
  RateSchedule schedule;
  Augmentation augmentation = Augmentation::kNone;
  Combining combining;
  uint32_t rounds = 0;
  uint64_t seed = 0;
  double ema = 0;       // the part of the earlier rounds in the model; 0: the last round's alone
  bool summed = false;  // updates are summed before the server half sees them
};

// A client's parameters after a round: as they lie in its upload, or in `own`.
struct Uploaded {
  NetworkParameters own;
  TensorViews values;
};

// An input_error for whatever does not fit; the values of `upload` itself are not checked.
Uploaded read_upload(const NetworkTraining& method, const ParameterShapes& shapes,
                     const NetworkParameters& broadcast, const State& upload);

// What the clients of a round add to a sum: the change of every parameter that they send.
SumParts sum_parts_of(const NetworkTraining& method, const ParameterShapes& shapes);

std::unique_ptr<ClientHalf> make_client_half(NetworkTraining training, const NetworkRounds& rounds,
                                             Trainers trainers);
std::unique_ptr<ServerHalf> make_server_half(const NetworkMethod& method, const NetworkRounds& rounds);

}  // namespace bitfed
