#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bitfed/model/model.h"

namespace bitfed {

// A model as C99 for a machine without an operating system: no heap, nothing of the library but memcpy, its
// tables constant. It gives the scores of Model::scores, bit for bit.
struct CExport {
  std::string header;
  std::string source;
  std::string trial;         // a main() that reads samples from standard input
  uint64_t table_bytes = 0;  // of flash; the code comes on top
  uint64_t ram_bytes = 0;    // static; the stack comes on top
};

// `name` begins the names in the C code: a C identifier. With the names of a table's `columns` the code lists
// its inputs by name. An input_error where C cannot carry the model.
CExport export_c(const Model& model, const std::string& name, const std::vector<std::string>& class_names,
                 const std::vector<std::string>& columns = {});

}  // namespace bitfed
