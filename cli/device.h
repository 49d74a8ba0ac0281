#pragma once

#include <memory>
#include <string>
#include "cli/command.h"

#include "bitfed/zoo/network/trainer.h"

namespace bitfed::cli {

void add_device_option(Command* command, std::string* device);

// The trainers of a device by its name, cpu, cuda, cuda:N or auto; null for the CPU. Of several GPUs `cuda`
// and `auto` are the one whose turn it is. With auto a GPU that cannot be used is named on standard error,
// and the CPU is taken.
std::shared_ptr<const Trainers> open_device(const std::string& name, unsigned turn = 0);

// The same for a rank, see mpi/launcher.h: each of a node's has a GPU, in turn. Opened by the first call,
// which a worker makes where its errors reach rank 0. Rank 0 itself trains nobody and opens none.
class RankDevice {
 public:
  RankDevice(std::string name, int rank) : name_(std::move(name)), rank_(rank) {}
  std::shared_ptr<const Trainers> open();

 private:
  std::string name_;
  int rank_;
  bool is_open_ = false;
  std::shared_ptr<const Trainers> trainers_;
};

}  // namespace bitfed::cli
