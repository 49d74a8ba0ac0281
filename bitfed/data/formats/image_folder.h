#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "bitfed/data/named_samples.h"

namespace bitfed {

struct ImageFolderOptions {
  std::vector<size_t> size;     // {height, width} to bring all images to; empty: they must have one size
  size_t channels = 0;          // 1: grey, 3: colour; 0: colour if any image has colour
  bool person_folders = false;  // folder/person/class/image instead of folder/class/image
  std::filesystem::path
      people;  // a CSV file with the columns `file` (from the folder) and `person`; empty: none
};

// PNG and JPEG files (.png, .jpg, .jpeg) in a folder for each class, in the order of their names. What
// `entries_of` leaves out is skipped; anything else in a class's folder is an input_error, as are an empty
// class and images of different sizes.
NamedSamples load_image_folder(const std::filesystem::path& folder, const ImageFolderOptions& options);

struct ImageFolders {
  std::filesystem::path train;
  std::optional<std::filesystem::path> test;  // empty: the folder is not split
};

// `folder` itself, or its `train` and the first of test, val, valid and validation.
ImageFolders find_image_folders(const std::filesystem::path& folder);

// Tiny-ImageNet's layout: wnids.txt with the classes, train/CLASS/images/*.JPEG, val/images/*.JPEG, and
// val/val_annotations.txt with the class of each. Classes keep their identifiers (n01443537).
bool is_tiny_imagenet(const std::filesystem::path& folder);
struct TinyImagenet {
  NamedSamples train;
  NamedSamples test;
};
TinyImagenet load_tiny_imagenet(const std::filesystem::path& folder, const ImageFolderOptions& options);

// Entries sorted by name, without hidden ones, Thumbs.db, desktop.ini and __MACOSX. An input_error where a
// name is not UTF-8 or has control characters.
std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder);

}  // namespace bitfed
