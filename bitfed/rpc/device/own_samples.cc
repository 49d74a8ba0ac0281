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
  const Dataset train = load_device_data(data, own.data_dir, seed).train;
  const Partition partition = make_partition(train, read_partition(data.section("partition")), seed);
  if (*own.part >= partition.size())
    throw input_error("part {}: expected 0 to {}", *own.part, partition.size() - 1);
  return subset(train, partition[*own.part]);
}

Dataset load_folder(const fs::path& folder, const Config& data, uint64_t seed) {
  const DatasetEntry& entry = find_entry(data.required_string("name"));
  if (entry.is_generated() || !has_files(entry, folder)) {
    throw input_error("{}: expected the files of '{}'{}{}", folder.string(), entry.name,
                      entry.files.empty() ? "" : ", such as ",
                      entry.files.empty() ? "" : entry.files.front());
  }
  return entry.load(folder, data, seed).train;
}

}  // namespace

Dataset load_own_samples(const OwnData& own, const Config& recipe, uint64_t seed, const Dataset& prototype) {
  const Config data = recipe.section("data");
  if (own.part) return conform(load_part(own, data, seed), prototype);
  std::error_code code;
  if (fs::is_directory(own.data, code)) return conform(load_folder(own.data, data, seed), prototype);
  CsvOptions options;
  options.label = data.text("label", "label");
  options.only = prototype.columns;
  if (!prototype.is_table())
    throw input_error("{}: expected a folder, the federation learns from images", own.data.string());
  return conform(load_csv(own.data, options), prototype);
}

}  // namespace bitfed
