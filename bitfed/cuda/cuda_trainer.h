#pragma once

#include "bitfed/cuda/device.h"
#include "bitfed/zoo/network/trainer.h"

namespace bitfed::cuda {

// Trainers on a GPU: cohorts of at most `cohort` clients. Memory and recorded steps of a network stay for the
// next round. A trainer that does not fit the memory throws TrainerTooLarge.
Trainers make_trainers(size_t cohort);

}  // namespace bitfed::cuda
