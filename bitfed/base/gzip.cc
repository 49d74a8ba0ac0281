#include "bitfed/base/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

#include "bitfed/base/error.h"

namespace bitfed {

Bytes gunzip(std::span<const uint8_t> compressed, std::string_view name, uint64_t limit) {
  z_stream stream{};
  if (inflateInit2(&stream, 16 + MAX_WBITS) != Z_OK) throw failure("zlib could not be started");
  struct End {
    z_stream* stream;
    ~End() { inflateEnd(stream); }
  } const end{&stream};

  // The output doubles as needed: a size that the file claims is not trusted.
  Bytes result;
  size_t offset = 0;
  size_t produced = 0;
  int status = Z_OK;
  while (status != Z_STREAM_END || offset < compressed.size()) {
    if (status == Z_STREAM_END) inflateReset(&stream);  // another member follows
    if (produced == result.size()) {
      if (produced >= limit) throw input_error("{}: unpacks to more than {} bytes", name, limit);
      result.resize(static_cast<size_t>(std::min<uint64_t>(limit, std::max<uint64_t>(65536, 2 * produced))));
    }
    const auto window = [](size_t bytes) {
      return static_cast<uInt>(std::min<size_t>(bytes, std::numeric_limits<uInt>::max()));
    };
    const uInt input = window(compressed.size() - offset);
    const uInt output = window(result.size() - produced);
    stream.next_in = const_cast<Bytef*>(compressed.data() + offset);
    stream.avail_in = input;
    stream.next_out = result.data() + produced;
    stream.avail_out = output;
    status = inflate(&stream, Z_NO_FLUSH);
    offset += input - stream.avail_in;
    produced += output - stream.avail_out;
    if (status == Z_BUF_ERROR || (status == Z_OK && offset == compressed.size() && stream.avail_out > 0)) {
      throw input_error("{}: the gzip data ends early, after {} unpacked bytes", name, produced);
    }
    if (status != Z_OK && status != Z_STREAM_END) {
      throw input_error("{}: not valid gzip data at byte {}: {}", name, offset,
                        stream.msg != nullptr ? stream.msg : "unexpected content");
    }
  }
  result.resize(produced);
  return result;
}

}  // namespace bitfed
