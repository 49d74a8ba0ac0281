#include <map>

#include "bitfed/base/error.h"
#include "bitfed/zoo/network_zoo.h"

// Apart from the networks themselves: a deployed one reads no recipes.
namespace bitfed {
namespace {

struct PixelStatistics {
  std::vector<float> mean, deviation;
};

// Of the training sets; CIFAR's are ImageNet's, as the papers take them. Others: the middle of the range.
PixelStatistics pixel_statistics(const Dataset& prototype) {
  static const std::map<std::string, PixelStatistics> kKnown = {
      {"mnist", {{0.1307f}, {0.3081f}}},
      {"fashion-mnist", {{0.2860f}, {0.3530f}}},
      {"svhn", {{0.4496f, 0.4496f, 0.4496f}, {0.1995f, 0.1995f, 0.1995f}}},
      {"cifar10", {{0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}}},
      {"cifar100", {{0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}}},
  };
  const auto found = kKnown.find(prototype.name);
  if (found != kKnown.end() && found->second.mean.size() == prototype.channels) return found->second;
  return {std::vector<float>(prototype.channels, 0.5f), std::vector<float>(prototype.channels, 0.5f)};
}

// Real networks take no signs, and their recipes need not say how.
void read_deployment(const Config& model, NetworkSpec* spec) {
  if (!spec->binary && !model.has("deploy")) return;
  const std::vector<std::string> ways = {"image", "static"};
  spec->static_signs = model.choice("deploy", ways[0], ways) == "static";
  if (spec->static_signs && !spec->binary) {
    throw input_error("{}: found static, expected image for a real network", model.where("deploy"));
  }
}

}  // namespace

NetworkSpec read_network(const Config& recipe, const Dataset& prototype, bool binary) {
  const Config model = recipe.section("model");
  NetworkSpec spec;
  spec.name = model.choice("name", network_names()[0], network_names());
  spec.binary = binary;
  spec.width = static_cast<uint32_t>(model.integer("width", spec.name == "cnn4" ? 32 : 64, 1, 256));
  if (binary && spec.width % kLanes != 0) {
    throw input_error("{}: found {}, expected a multiple of {} for a binary network", model.where("width"),
                      spec.width, kLanes);
  }
  read_deployment(model, &spec);
  if (prototype.is_table()) {
    throw input_error("{}: '{}' is a table, and {} needs images", model.where("name"), prototype.name,
                      spec.name);
  }
  const uint32_t least = least_side(spec.name);
  if (prototype.height < least || prototype.width < least) {
    throw input_error("{}: images of {} x {}, expected at least {} x {} for the pools of {}",
                      model.where("name"), prototype.height, prototype.width, least, least, spec.name);
  }
  if (prototype.height > 256 || prototype.width > 256) {
    throw input_error("{}: images of {} x {}, expected at most 256 x 256", model.where("name"),
                      prototype.height, prototype.width);
  }
  spec.height = static_cast<uint32_t>(prototype.height);
  spec.image_width = static_cast<uint32_t>(prototype.width);
  spec.channels = static_cast<uint32_t>(prototype.channels);
  spec.classes = static_cast<uint32_t>(prototype.class_count());
  const PixelStatistics statistics = pixel_statistics(prototype);
  spec.mean = statistics.mean;
  spec.deviation = statistics.deviation;
  return spec;
}

}  // namespace bitfed
