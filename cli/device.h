#pragma once

#include <memory>
#include <string>
#include "cli/command.h"

#include "bitfed/zoo/network/trainer.h"

namespace bitfed::cli {

void add_device_option(Command* command, std::string* device);

// The trainers of a device by its name, cpu, cuda, cuda:N or auto; null for the CPU. With auto a GPU that
// cannot be used is named on standard error, and the CPU is taken.
std::shared_ptr<const Trainers> open_device(const std::string& name);

}  // namespace bitfed::cli
