#include "bitfed/data/formats/zlib_stream.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

#include "bitfed/base/error.h"

namespace bitfed {
namespace {

constexpr uint64_t kFirstBytes = 4096;
constexpr uint64_t kLargestRatio = 1032;  // of what a stream unpacks to; by the format

}  // namespace

Bytes unzlib(std::span<const uint8_t> packed, std::string_view name, uint64_t limit,
             uint64_t (*claimed)(std::span<const uint8_t> first)) {
  z_stream stream{};
  if (inflateInit(&stream) != Z_OK) throw failure("zlib could not be started");
  struct End {
    z_stream* stream;
    ~End() { inflateEnd(stream); }
  } const end{&stream};
  stream.next_in = const_cast<Bytef*>(packed.data());
  stream.avail_in = static_cast<uInt>(packed.size());  // below 4 GiB, see the header
  Bytes result;
  size_t produced = 0;
  int status = Z_OK;
  while (status == Z_OK) {
    if (produced == result.size()) {
      if (produced >= limit) throw input_error("{}: unpacks to more than {} bytes", name, limit);
      uint64_t size = std::min<uint64_t>(limit, std::max<uint64_t>(kFirstBytes, 2 * produced));
      if (produced >= kFirstBytes && claimed != nullptr) {
        // A byte more: the stream's end is found where there is room left.
        const uint64_t all = std::min({claimed(result) + 1, limit, kLargestRatio * packed.size()});
        result.reserve(static_cast<size_t>(all));
        if (produced < all) size = std::min(size, all);
      }
      result.resize(static_cast<size_t>(size));
    }
    const auto room =
        static_cast<uInt>(std::min<size_t>(result.size() - produced, std::numeric_limits<uInt>::max()));
    stream.next_out = result.data() + produced;
    stream.avail_out = room;
    status = inflate(&stream, Z_NO_FLUSH);
    produced += room - stream.avail_out;
  }
  if (status != Z_STREAM_END || stream.avail_in != 0) {
    throw input_error("{}: a compressed variable is not one complete zlib stream: {}", name,
                      stream.msg != nullptr ? stream.msg : "it ends early or bytes follow it");
  }
  result.resize(produced);
  return result;
}

}  // namespace bitfed
