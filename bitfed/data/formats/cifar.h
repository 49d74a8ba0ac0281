#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

#include "bitfed/data/dataset.h"

namespace bitfed {

// The binary versions of CIFAR-10 and CIFAR-100: records of one label byte (CIFAR-100: the coarse label,
// then the fine one) and 32 x 32 pixels, channel by channel.
enum class CifarKind { kCifar10, kCifar100 };

// Appends the records to `dataset`, with fine labels. `name` is for error messages.
void parse_cifar(std::span<const uint8_t> bytes, std::string_view name, CifarKind kind, Dataset& dataset);

DataSplit load_cifar10(const std::filesystem::path& folder);   // data_batch_1.bin …, test_batch.bin
DataSplit load_cifar100(const std::filesystem::path& folder);  // train.bin, test.bin

}  // namespace bitfed
