#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bitfed/data/dataset.h"
#include "bitfed/data/named_samples.h"

namespace bitfed {

// The binary versions of CIFAR-10 and CIFAR-100: records of one label byte (CIFAR-100: the coarse label,
// then the fine one) and 32 x 32 pixels, channel by channel.
enum class CifarKind { kCifar10, kCifar100 };

// Appends the records to `dataset`, with fine labels. `name` is for error messages.
void parse_cifar(std::span<const uint8_t> bytes, std::string_view name, CifarKind kind, Dataset& dataset);

// Records of the same kind, of any image {height, width, channels}: `label_bytes` bytes, of which the last is
// the label, then the pixels, channel by channel.
NamedSamples parse_records(std::span<const uint8_t> bytes, const std::string& name,
                           const std::vector<size_t>& image, size_t label_bytes);

DataSplit load_cifar10(const std::filesystem::path& folder);   // data_batch_1.bin …, test_batch.bin
DataSplit load_cifar100(const std::filesystem::path& folder);  // train.bin, test.bin

}  // namespace bitfed
