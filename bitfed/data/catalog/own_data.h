#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "bitfed/base/config.h"
#include "bitfed/data/catalog/split_table.h"
#include "bitfed/data/dataset.h"

namespace bitfed {

// Images and arrays that a recipe's [data] table names by file or folder:
//
//   file = "set.npz"                       x and y, optionally person
//   file = "x.npy"         labels = "y.npy"        person = "who.npy"
//   file = "train-images"  labels = "train-labels"     IDX, any labels
//   file = ["a.bin", …]    image = [32, 32, 3]  label_bytes = 1     records as in CIFAR
//   file = "users.json"    image = [28, 28, 1]         LEAF, a person per user
//   folder = "pets"        person = "folder" or "people.csv"       images by class, or LEAF's JSON files
//
// test_file and test_labels name test samples; so do the folders train and test. Without them `split` and
// `test_fraction` draw them, see split_table.h. class_names names the classes in the order of their labels.
DataSplit load_own_data(const Config& data, const std::string& data_dir, uint64_t seed);

// How samples without test samples are split unless the recipe says otherwise.
SplitSpec usual_split(const Dataset& whole);

struct SamplesAt {
  Dataset all;                        // training samples first, in the order of the files
  std::optional<size_t> train_count;  // where the files say which samples are for testing
};

// All samples of a file or folder that is read with the other keys of `data`. People are left out where the
// recipe's `person` does not know them.
SamplesAt load_samples_at(const Config& data, const std::filesystem::path& path);

// Training and test samples, as a run of a recipe with this [data] would have them.
DataSplit split_as(const Config& data, const SamplesAt& samples, uint64_t seed);

// The training samples that a device has at `path`, as it may have nothing else: read with the keys `format`,
// `image`, `label_bytes`, `size` and `channels` of a federation's recipe. Whose they are does not matter.
// `labels`: of an IDX or .npy file, else empty.
Dataset load_own_training(const Config& data, const std::filesystem::path& path,
                          const std::filesystem::path& labels);

// Whether the table names a CSV file: a single file with none of the endings above.
bool is_csv(const Config& data);

}  // namespace bitfed
