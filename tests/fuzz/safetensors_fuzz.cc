#include <nlohmann/json.hpp>

#include "bitfed/base/error.h"
#include "bitfed/model/safetensors_header.h"
#include "bitfed/model/state.h"

namespace {

using namespace bitfed;

// Whatever the header's own parser accepts, a general one reads the same from.
void check_header(std::string_view text) {
  SafetensorsHeader header;
  try {
    header = parse_safetensors_header(text, "fuzz");
  } catch (const Error& error) {
    if (std::string_view(error.what()).find('\n') != std::string_view::npos) __builtin_trap();
    return;
  }
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) __builtin_trap();
  const size_t others = json.contains("__metadata__") ? 1 : 0;
  if (json.size() != header.tensors.size() + others) __builtin_trap();
  if (others == 1 && json["__metadata__"] != nlohmann::json(header.metadata)) __builtin_trap();
  for (const TensorEntry& tensor : header.tensors) {
    const nlohmann::json expected = {
        {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", tensor.data_offsets}};
    if (json[tensor.name] != expected) __builtin_trap();
  }
}

}  // namespace

// The bytes are a file, and all but the first eight of them a header.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size >= 8) check_header({reinterpret_cast<const char*>(data) + 8, size - 8});
  State state;
  try {
    state = decode({data, size}, "fuzz");
  } catch (const Error&) {
    return 0;
  }
  // What was accepted must survive the round trip; an Error from here is a finding.
  if (!(decode(encode(state), "again") == state)) __builtin_trap();
  return 0;
}
