#pragma once

#include "bitfed/cuda/device.h"
#include "bitfed/zoo/network/trainer.h"

namespace bitfed::cuda {

// Trainers on a GPU, which open_device() has opened: cohorts of at most `cohort` clients. Any thread may make
// them; those of different threads train side by side. Memory and recorded steps of a network stay for the
// next round. A trainer that does not fit the memory throws TrainerTooLarge.
Trainers make_trainers(size_t cohort, int device = 0);

}  // namespace bitfed::cuda
