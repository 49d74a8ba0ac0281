#include "bitfed/zoo/mlp_zoo.h"

#include "bitfed/base/error.h"

namespace bitfed {

MlpShape read_mlp(const Config& recipe, const Dataset& prototype, bool binary) {
  const Config model = recipe.section("model");
  const std::vector<std::string> names = {"mlp"};
  model.choice("name", names[0], names);
  if (!prototype.is_table()) {
    throw input_error("{}: '{}' holds images, and mlp needs a table of numbers", model.where("name"),
                      prototype.name);
  }
  MlpShape shape;
  shape.widths.push_back(static_cast<uint32_t>(prototype.columns.size()));
  for (const int64_t width : model.integers("hidden", {64, 32, 16}, 1, 4096))
    shape.widths.push_back(static_cast<uint32_t>(width));
  shape.widths.push_back(static_cast<uint32_t>(prototype.class_count()));
  const std::vector<std::string> precisions = {"binary", "full"};
  shape.binary = model.choice("precision", precisions[binary ? 0 : 1], precisions) == precisions[0];
  return shape;
}

}  // namespace bitfed
