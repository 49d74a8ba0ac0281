#include "bitfed/data/catalog/catalog.h"
#include "bitfed/data/catalog/own_data.h"

namespace bitfed {

DataSplit load_data(const Config& data, const std::string& data_dir, uint64_t seed) {
  if (data.has("name") || !names_files(data) || is_csv(data)) return load_device_data(data, data_dir, seed);
  return with_notes(load_own_data(data, data_dir, seed));
}

}  // namespace bitfed
