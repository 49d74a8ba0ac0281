#include "bitfed/zoo/architectures/architectures.h"

#include <algorithm>
#include <cassert>

namespace bitfed {

const std::vector<ArchitectureEntry>& architectures() {
  static const std::vector<ArchitectureEntry> kArchitectures = {
      {"cnn4",
       "four 3 x 3 convolutions with batch norm and pooling, and a dense layer; binary or real, for images",
       32, 16, describe_cnn4},
      {"resnet10", "residual network of four blocks for small images, binary or real", 64, 1,
       describe_resnet10},
      {"resnet18", "residual network of eight blocks for small images, binary or real", 64, 1,
       describe_resnet18},
      {"custom", "a network that the recipe spells out layer by layer, binary or real, for images", 0, 1,
       describe_custom},
  };
  return kArchitectures;
}

const ArchitectureEntry* find_architecture(const std::string& name) {
  for (const ArchitectureEntry& entry : architectures()) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

std::vector<std::string> architecture_names() {
  std::vector<std::string> names;
  for (const ArchitectureEntry& entry : architectures()) names.push_back(entry.name);
  return names;
}

Architecture architecture_of(const NetworkSpec& spec) {
  const ArchitectureEntry* entry = find_architecture(spec.name);
  assert(entry != nullptr);
  return entry->describe(spec);
}

}  // namespace bitfed
