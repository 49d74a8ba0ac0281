#pragma once

#include <string>
#include <vector>

#include "bitfed/zoo/network/architecture.h"

namespace bitfed {

// An architecture of the zoo. A new one is a file in this folder and a line in architectures.cc.
struct ArchitectureEntry {
  std::string name;  // as a recipe's [model] name
  std::string description;
  uint32_t default_width;  // 0: the recipe's `width` means nothing
  uint32_t min_side;       // of images
  Architecture (*describe)(const NetworkSpec& spec);
};

Architecture describe_cnn4(const NetworkSpec& spec);
Architecture describe_resnet10(const NetworkSpec& spec);
Architecture describe_resnet18(const NetworkSpec& spec);
Architecture describe_custom(const NetworkSpec& spec);

// The one list, in the order they are shown.
const std::vector<ArchitectureEntry>& architectures();

// Null where there is none of that name.
const ArchitectureEntry* find_architecture(const std::string& name);

// The names, as errors list them.
std::vector<std::string> architecture_names();

// The description of a network whose name is known. An input_error where layers do not fit together.
Architecture architecture_of(const NetworkSpec& spec);

}  // namespace bitfed
