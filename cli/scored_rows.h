#pragma once

#include <string>

#include "bitfed/data/dataset.h"
#include "bitfed/zoo/model_file.h"

namespace bitfed::cli {

struct RowsRequest {
  std::string
      data;  // a built-in set, a recipe (.toml), a file or a folder; empty: what the model's recipe names
  std::string data_dir;
  std::string label;   // CSV: the column with the classes; empty: the one of the model's recipe
  std::string person;  // CSV: a column that is no input
  std::string ignore;  // CSV: columns that are no inputs, "a,b"
  std::string rows;  // test, validation, train or all; empty: test where the data is the run's own, else all
};

// What a model is scored on, and what that is in words.
struct ScoredRows {
  Dataset data;
  std::string rows;   // test, validation, train or all
  std::string about;  // "the run's test rows of table.csv, 60 of 200"
};

ScoredRows load_scored_rows(const RowsRequest& request, const ModelFile& file);

}  // namespace bitfed::cli
