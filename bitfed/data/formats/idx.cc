#include "bitfed/data/formats/idx.h"

#include <algorithm>
#include <utility>

#include "bitfed/base/byte_io.h"
#include "bitfed/base/error.h"
#include "bitfed/base/gzip.h"

namespace bitfed {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kImagesMagic = 0x00000803;  // unsigned bytes, three dimensions
constexpr uint32_t kLabelsMagic = 0x00000801;  // unsigned bytes, one dimension
constexpr uint32_t kMaximumSide = 4096;
constexpr uint64_t kMaximumUnpackedBytes = uint64_t{1} << 30;

// The bytes themselves, or decompressed into `storage` where they are gzip.
std::span<const uint8_t> unpacked(std::span<const uint8_t> bytes, std::string_view name, Bytes& storage) {
  if (bytes.size() < 2 || bytes[0] != 0x1f || bytes[1] != 0x8b) return bytes;
  storage = gunzip(bytes, name, kMaximumUnpackedBytes);
  return storage;
}

void expect_magic(ByteReader& reader, uint32_t expected, std::string_view name) {
  const uint32_t found = reader.u32_be();
  if (found == expected) return;
  throw input_error("{}: starts with {:#010x}, expected {:#010x} (IDX {})", name, found, expected,
                    expected == kImagesMagic ? "images" : "labels");
}

uint32_t take_side(ByteReader& reader, std::string_view what, std::string_view name) {
  const uint32_t side = reader.u32_be();
  if (side >= 1 && side <= kMaximumSide) return side;
  throw input_error("{}: image {} is {}, expected 1 to {}", name, what, side, kMaximumSide);
}

// The rest of the file, which must be exactly `count` items of `item_bytes`.
std::vector<uint8_t> take_items(ByteReader& reader, uint64_t count, uint64_t item_bytes,
                                std::string_view name) {
  if (count == 0) throw input_error("{}: its header says 0 items, expected at least one", name);
  if (reader.left() != count * item_bytes) {
    throw input_error("{}: its header says {} items of {} bytes, {} bytes follow", name, count, item_bytes,
                      reader.left());
  }
  const auto items = reader.take(reader.left());
  return {items.begin(), items.end()};
}

// The compressed file as downloaded, or the plain one.
fs::path find_file(const fs::path& folder, const std::string& name) {
  std::error_code code;
  const fs::path plain = folder / name;
  return fs::exists(plain, code) && !fs::exists(folder / (name + ".gz"), code) ? plain
                                                                               : folder / (name + ".gz");
}

Dataset load_part(const fs::path& folder, const std::string& part, const std::string& name,
                  const std::vector<std::string>& class_names) {
  const fs::path images_path = find_file(folder, part + "-images-idx3-ubyte");
  const fs::path labels_path = find_file(folder, part + "-labels-idx1-ubyte");
  IdxImages images = parse_idx_images(read_file(images_path), images_path.string());
  const std::vector<uint8_t> labels = parse_idx_labels(read_file(labels_path), labels_path.string());
  if (labels.size() != images.count) {
    throw input_error("{}: {} labels, but {} holds {} images", labels_path.string(), labels.size(),
                      images_path.string(), images.count);
  }
  const auto largest = std::max_element(labels.begin(), labels.end());
  if (*largest >= class_names.size()) {
    throw input_error("{}: label {} of item {}, expected 0 to {}", labels_path.string(), *largest,
                      largest - labels.begin(), class_names.size() - 1);
  }
  Dataset dataset;
  dataset.name = name;
  dataset.height = images.height;
  dataset.width = images.width;
  dataset.channels = 1;
  dataset.pixels = std::move(images.pixels);
  dataset.labels.assign(labels.begin(), labels.end());
  dataset.class_names = class_names;
  return dataset;
}

}  // namespace

IdxImages parse_idx_images(std::span<const uint8_t> bytes, std::string_view name) {
  Bytes storage;
  ByteReader reader(unpacked(bytes, name, storage), name);
  expect_magic(reader, kImagesMagic, name);
  IdxImages images;
  images.count = reader.u32_be();
  images.height = take_side(reader, "height", name);
  images.width = take_side(reader, "width", name);
  images.pixels = take_items(reader, images.count, images.height * images.width, name);
  return images;
}

std::vector<uint8_t> parse_idx_labels(std::span<const uint8_t> bytes, std::string_view name) {
  Bytes storage;
  ByteReader reader(unpacked(bytes, name, storage), name);
  expect_magic(reader, kLabelsMagic, name);
  const uint32_t count = reader.u32_be();
  return take_items(reader, count, 1, name);
}

DataSplit load_idx(const fs::path& folder, const std::string& name,
                   const std::vector<std::string>& class_names) {
  DataSplit split{load_part(folder, "train", name, class_names),
                  load_part(folder, "t10k", name, class_names)};
  if (split.train.height != split.test.height || split.train.width != split.test.width) {
    throw input_error("{}: training images are {}x{}, test images {}x{}; expected one size", folder.string(),
                      split.train.height, split.train.width, split.test.height, split.test.width);
  }
  return split;
}

}  // namespace bitfed
