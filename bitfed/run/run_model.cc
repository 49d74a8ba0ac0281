#include "bitfed/run/run_folder.h"

#include <memory>

#include "bitfed/zoo/zoo.h"

namespace bitfed {

RunFolder read_run_with_model(const std::filesystem::path& folder) {
  RunFolder run = read_run_folder(folder);
  const std::filesystem::path path = folder / "model.safetensors";
  if (!std::filesystem::exists(path)) return run;
  const std::unique_ptr<Model> model = load_model(read_state(path), path.string());
  if (const auto* tsetlin = dynamic_cast<const TsetlinModel*>(model.get())) run.machines = tsetlin->members();
  return run;
}

}  // namespace bitfed
