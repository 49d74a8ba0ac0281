// write_fashion_bits DIR: the bits that bitfed_tsetlin_benchmark trains and predicts on, a byte each, for
// other libraries: DIR/BOOLEANIZER-{train,test}-{bits,labels}.u8.

#include <cstdio>
#include <filesystem>

#include "benchmarks/fashion_bits.h"
#include "bitfed/base/byte_io.h"
#include "bitfed/base/error.h"

namespace bitfed {
namespace {

std::vector<uint8_t> as_bytes(const BitImages& images) {
  std::vector<uint8_t> bytes;
  bytes.reserve(images.count * images.height * images.width);
  for (size_t sample = 0; sample < images.count; ++sample) {
    for (size_t y = 0; y < images.height; ++y) {
      for (size_t x = 0; x < images.width; ++x) bytes.push_back(get_bit(images.row(sample, y), x) ? 1 : 0);
    }
  }
  return bytes;
}

void write(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  for (const std::string booleanizer : {"threshold", "adaptive-gaussian"}) {
    const FashionBits bits = load_fashion_bits(booleanizer);
    const auto put = [&](const char* what, const std::vector<uint8_t>& bytes) {
      write_file_atomically(folder / (booleanizer + what), bytes);
    };
    put("-train-bits.u8", as_bytes(bits.train));
    put("-test-bits.u8", as_bytes(bits.test));
    put("-train-labels.u8", {bits.train_labels.begin(), bits.train_labels.end()});
    put("-test-labels.u8", {bits.test_labels.begin(), bits.test_labels.end()});
  }
}

}  // namespace
}  // namespace bitfed

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: write_fashion_bits DIR\n");
    return 2;
  }
  try {
    bitfed::write(argv[1]);
  } catch (const bitfed::Error& error) {
    fprintf(stderr, "write_fashion_bits: %s\n", error.what());
    return 1;
  }
  return 0;
}
