#include "bitfed/rpc/device/own_samples.h"

#include "bitfed/base/error.h"
#include "bitfed/data/catalog/catalog.h"
#include "bitfed/data/conform.h"
#include "bitfed/data/formats/csv.h"
#include "bitfed/data/partition/partition.h"

namespace bitfed {
namespace {

namespace fs = std::filesystem;

Dataset load_part(const OwnData& own, const Config& data, uint64_t seed) {
  const auto load = own.readers.recipe_data ? own.readers.recipe_data : load_device_data;
  const Dataset train = load(data, own.data_dir, seed).train;
  const Partition partition = make_partition(train, read_partition(data.section("partition")), seed);
  if (*own.part >= partition.size())
    throw input_error("part {}: expected 0 to {}", *own.part, partition.size() - 1);
  return subset(train, partition[*own.part]);
}

// The recipe's built-in data set with the device's own images; null where the recipe has none, or the folder
// does not hold it.
const DatasetEntry* entry_in(const fs::path& folder, const Config& data) {
  if (!data.has("name")) return nullptr;
  const DatasetEntry& entry = find_entry(data.required_string("name"));
  return !entry.is_generated() && has_files(entry, folder) ? &entry : nullptr;
}

Error no_reader(const fs::path& path, const Config& data, const Dataset& prototype) {
  const DatasetEntry* entry = data.has("name") ? &find_entry(data.required_string("name")) : nullptr;
  const bool has_files = entry != nullptr && !entry->files.empty();
  return input_error("{}: expected {}{}; images and arrays are read by bitfed join, not by bitfed-client",
                     path.string(), prototype.is_table() ? "a CSV file" : "a folder",
                     has_files ? " with files such as " + entry->files.front() : "");
}

Dataset load_at(const OwnData& own, const Config& data, uint64_t seed, const Dataset& prototype) {
  std::error_code code;
  const bool is_folder = fs::is_directory(own.data, code);
  if (const DatasetEntry* entry = is_folder ? entry_in(own.data, data) : nullptr)
    return entry->load(own.data, data, seed).train;
  const fs::path ending = own.data.extension();
  const bool is_table = prototype.is_table() && !is_folder && ending != ".npz" && ending != ".npy";
  if (is_table) {
    CsvOptions options;
    options.label = data.text("label", "label");
    options.only = prototype.columns;
    return load_csv(own.data, options);
  }
  if (!own.readers.own) throw no_reader(own.data, data, prototype);
  return own.readers.own(data, own.data, own.labels);
}

}  // namespace

Dataset load_own_samples(const OwnData& own, const Config& recipe, uint64_t seed, const Dataset& prototype) {
  const Config data = recipe.section("data");
  return conform(own.part ? load_part(own, data, seed) : load_at(own, data, seed, prototype), prototype);
}

}  // namespace bitfed
