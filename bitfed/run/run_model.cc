#include "bitfed/run/run_folder.h"

#include "bitfed/zoo/model_file.h"

namespace bitfed {

RunFolder read_run_with_model(const std::filesystem::path& folder) {
  RunFolder run = read_run_folder(folder);
  const std::filesystem::path path = folder / "model.safetensors";
  if (!std::filesystem::exists(path)) return run;
  // Pages show the clauses of Tsetlin machines. A method in Python may leave a model that only Python can
  // load.
  const State state = read_state(path);
  if (const auto kind = state.metadata.find("bitfed.kind");
      kind != state.metadata.end() && kind->second == "python")
    return run;
  ModelFile file = read_model_file(path.string());
  const auto* tsetlin = dynamic_cast<const TsetlinModel*>(file.model.get());
  if (tsetlin != nullptr) run.machines = tsetlin->members();
  run.columns = std::move(file.columns);
  return run;
}

}  // namespace bitfed
