#include "bitfed/zoo/network/network_recipe.h"

#include <algorithm>

#include "bitfed/base/error.h"
#include "bitfed/zoo/architectures/architectures.h"

// Apart from the networks themselves: a deployed one reads no recipes.
namespace bitfed {
namespace {

void check_pixel_statistics(const Config& data, const Dataset& prototype) {
  const size_t channels = prototype.channels;
  if (prototype.pixel_mean.size() == channels && prototype.pixel_std.size() == channels) return;
  throw input_error(
      "{}: missing for the images of '{}', expected pixel_mean and pixel_std in [data], one value per "
      "channel ({}); "
      "bitfed data info prints them",
      data.where("pixel_mean"), prototype.name, channels);
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

Architecture described(const Config& model, const NetworkSpec& spec) {
  try {
    return architecture_of(spec);
  } catch (const Error& error) {
    throw input_error("{}: {}", model.where(spec.name == "custom" ? "layers" : "name"), error.what());
  }
}

// Only residual blocks have shortcuts. Read only where it is given: earlier runs were recorded without it.
void read_shortcuts(const Config& model, const Architecture& architecture, NetworkSpec* spec) {
  const bool has_blocks =
      std::any_of(architecture.layers.begin(), architecture.layers.end(),
                  [](const LayerRecord& record) { return record.kind == LayerKind::kResidual; });
  if (!has_blocks || !model.has("shortcuts")) return;
  const std::vector<std::string> around = {"block", "convolution"};
  if (model.choice("shortcuts", around[0], around) == "convolution")
    spec->shortcuts = Shortcuts::kConvolution;
}

}  // namespace

NetworkSpec read_network(const Config& recipe, const Dataset& prototype, bool binary) {
  const Config model = recipe.section("model");
  const std::vector<std::string> names = architecture_names();
  NetworkSpec spec;
  spec.name = model.choice("name", names[0], names);
  const ArchitectureEntry& entry = *find_architecture(spec.name);
  spec.binary = binary;
  if (entry.default_width == 0) {
    spec.layers = model.texts("layers");
  } else {
    spec.width = static_cast<uint32_t>(model.integer("width", entry.default_width, 1, 256));
    if (binary && spec.width % kLanes != 0) {
      throw input_error("{}: found {}, expected a multiple of {} for a binary network", model.where("width"),
                        spec.width, kLanes);
    }
  }
  read_deployment(model, &spec);
  if (prototype.is_table()) {
    throw input_error(
        "{}: '{}' is a table, and {} needs images; for tables there are the methods fedavg, fed-bin-mlp and those "
        "of Tsetlin machines",
        model.where("name"), prototype.name, spec.name);
  }
  const uint32_t min_side = entry.min_side;
  if (prototype.height < min_side || prototype.width < min_side) {
    throw input_error("{}: images of {} x {}, expected at least {} x {} for the pools of {}",
                      model.where("name"), prototype.height, prototype.width, min_side, min_side, spec.name);
  }
  if (prototype.height > 256 || prototype.width > 256) {
    throw input_error("{}: images of {} x {}, expected at most 256 x 256", model.where("name"),
                      prototype.height, prototype.width);
  }
  spec.height = static_cast<uint32_t>(prototype.height);
  spec.image_width = static_cast<uint32_t>(prototype.width);
  spec.channels = static_cast<uint32_t>(prototype.channels);
  spec.classes = static_cast<uint32_t>(prototype.class_count());
  check_pixel_statistics(recipe.section("data"), prototype);
  spec.mean = prototype.pixel_mean;
  spec.deviation = prototype.pixel_std;
  read_shortcuts(model, described(model, spec), &spec);
  return spec;
}

}  // namespace bitfed
