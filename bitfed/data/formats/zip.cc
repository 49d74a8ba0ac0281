#include "bitfed/data/formats/zip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

#include "bitfed/base/error.h"

namespace bitfed {
namespace {

// Layout: PKWARE's APPNOTE, sections 4.3.7 (local header), 4.3.12 (central directory), 4.3.16 (its end).
constexpr uint32_t kLocalHeader = 0x04034b50;
constexpr uint32_t kCentralHeader = 0x02014b50;
constexpr uint32_t kEndOfDirectory = 0x06054b50;
constexpr size_t kEndBytes = 22;
constexpr size_t kMaximumComment = 65535;
constexpr size_t kMaximumFiles = 4096;
constexpr uint32_t kInZip64 = 0xffffffff;  // the value stands in an extra field
constexpr uint64_t kMaximumRatio = 1032;   // of deflate

struct Entry {
  std::string name;
  uint16_t flags = 0;
  uint16_t method = 0;
  uint32_t crc = 0;
  uint64_t packed = 0;
  uint64_t unpacked = 0;
  uint64_t offset = 0;
};

size_t find_end(std::span<const uint8_t> bytes, std::string_view name) {
  if (bytes.size() >= kEndBytes) {
    const size_t last = bytes.size() - kEndBytes;
    const size_t first = last > kMaximumComment ? last - kMaximumComment : 0;
    for (size_t at = last + 1; at-- > first;) {
      if (ByteReader(bytes.subspan(at, 4), name).u32_le() == kEndOfDirectory) return at;
    }
  }
  throw input_error("{}: found no end of a ZIP directory, expected a whole archive", name);
}

// NumPy writes the extra field of large files for small ones, too; only sizes that need it are taken from it.
void read_zip64(std::span<const uint8_t> extra, std::string_view name, Entry* entry) {
  ByteReader reader(extra, name);
  while (reader.left() >= 4) {
    const uint16_t kind = reader.u16_le();
    ByteReader field(reader.take(reader.u16_le()), name);
    if (kind != 1) continue;
    for (uint64_t* value : {&entry->unpacked, &entry->packed, &entry->offset}) {
      if (*value == kInZip64) *value = field.u64_le();
    }
  }
}

Entry read_entry(ByteReader& reader, std::string_view name) {
  if (reader.u32_le() != kCentralHeader)
    throw input_error("{}: the ZIP directory is damaged at byte {}", name, reader.offset());
  Entry entry;
  reader.take(4);  // versions
  entry.flags = reader.u16_le();
  entry.method = reader.u16_le();
  reader.take(4);  // time
  entry.crc = reader.u32_le();
  entry.packed = reader.u32_le();
  entry.unpacked = reader.u32_le();
  const uint16_t name_bytes = reader.u16_le();
  const uint16_t extra_bytes = reader.u16_le();
  const uint16_t comment_bytes = reader.u16_le();
  reader.take(8);  // disk, attributes
  entry.offset = reader.u32_le();
  const auto text = reader.take(name_bytes);
  entry.name.assign(text.begin(), text.end());
  if (std::any_of(text.begin(), text.end(), [](uint8_t c) { return c < 0x20 || c >= 0x7f; }))
    throw input_error("{}: holds a file named {:?}, expected plain ASCII", name, entry.name);
  read_zip64(reader.take(extra_bytes), name, &entry);
  reader.take(comment_bytes);
  return entry;
}

std::span<const uint8_t> packed_bytes(std::span<const uint8_t> bytes, const Entry& entry,
                                      std::string_view name) {
  if (entry.offset > bytes.size())
    throw input_error("{}: {} is said to begin at byte {}, the archive has {}", name, entry.name,
                      entry.offset, bytes.size());
  ByteReader reader(bytes.subspan(static_cast<size_t>(entry.offset)), name);
  if (reader.u32_le() != kLocalHeader)
    throw input_error("{}: {} has no header at byte {}", name, entry.name, entry.offset);
  reader.take(22);
  const uint16_t name_bytes = reader.u16_le();
  const uint16_t extra_bytes = reader.u16_le();
  reader.take(size_t{name_bytes} + extra_bytes);
  if (entry.packed > reader.left())
    throw input_error("{}: {} is said to have {} bytes, {} follow", name, entry.name, entry.packed,
                      reader.left());
  return reader.take(static_cast<size_t>(entry.packed));
}

Bytes inflated(std::span<const uint8_t> packed, const Entry& entry, std::string_view name) {
  if (entry.unpacked > kMaximumFileBytes || entry.unpacked / kMaximumRatio > packed.size() + 1 ||
      packed.size() > std::numeric_limits<uInt>::max()) {
    throw input_error("{}: {} is said to unpack from {} to {} bytes, expected at most {}", name, entry.name,
                      packed.size(), entry.unpacked, kMaximumFileBytes);
  }
  Bytes result(static_cast<size_t>(entry.unpacked) + 1);  // one more, to notice what is longer than it says
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) throw failure("zlib could not be started");
  stream.next_in = const_cast<Bytef*>(packed.data());
  stream.avail_in = static_cast<uInt>(packed.size());
  int status = Z_OK;
  size_t produced = 0;
  while (status == Z_OK && produced < result.size()) {
    const auto room =
        static_cast<uInt>(std::min<size_t>(result.size() - produced, std::numeric_limits<uInt>::max()));
    stream.next_out = result.data() + produced;
    stream.avail_out = room;
    status = inflate(&stream, Z_NO_FLUSH);
    produced += room - stream.avail_out;
  }
  inflateEnd(&stream);
  if (status != Z_STREAM_END || produced != entry.unpacked) {
    throw input_error("{}: {} is damaged: it unpacks to {} bytes, expected {}", name, entry.name, produced,
                      entry.unpacked);
  }
  result.resize(produced);
  return result;
}

Bytes content_of(std::span<const uint8_t> bytes, const Entry& entry, std::string_view name) {
  if ((entry.flags & 1) != 0) throw input_error("{}: {} is encrypted", name, entry.name);
  const std::span<const uint8_t> packed = packed_bytes(bytes, entry, name);
  Bytes content;
  if (entry.method == 0) {
    content.assign(packed.begin(), packed.end());
  } else if (entry.method == 8) {
    content = inflated(packed, entry, name);
  } else {
    throw input_error("{}: {} is packed by method {}, expected 0 (stored) or 8 (deflate)", name, entry.name,
                      entry.method);
  }
  if (crc32_z(0, content.data(), content.size()) != entry.crc)
    throw input_error("{}: {} is damaged: its CRC-32 is not the stored one", name, entry.name);
  return content;
}

}  // namespace

std::vector<ZipFile> parse_zip(std::span<const uint8_t> bytes, std::string_view name) {
  ByteReader end(bytes.subspan(find_end(bytes, name)), name);
  end.take(8);  // signature, disks
  end.u16_le();
  const uint16_t count = end.u16_le();
  const uint32_t directory_bytes = end.u32_le();
  const uint32_t offset = end.u32_le();
  if (offset == kInZip64 || count == 0xffff)
    throw input_error("{}: found a ZIP64 directory, expected an archive of fewer than 65535 files and 4 GiB",
                      name);
  if (count > kMaximumFiles || offset > bytes.size() || directory_bytes > bytes.size() - offset) {
    throw input_error("{}: its ZIP directory says {} files in {} bytes at byte {}, the archive has {} bytes",
                      name, count, directory_bytes, offset, bytes.size());
  }
  ByteReader directory(bytes.subspan(offset, directory_bytes), name);
  std::vector<ZipFile> files;
  uint64_t total = 0;
  for (uint16_t i = 0; i < count; ++i) {
    const Entry entry = read_entry(directory, name);
    total += entry.unpacked;
    // Entries may share bytes: without a limit on the sum a small archive would fill the memory.
    if (total > kMaximumFileBytes)
      throw input_error("{}: unpacks to more than {} bytes", name, kMaximumFileBytes);
    files.push_back({entry.name, content_of(bytes, entry, name)});
  }
  return files;
}

}  // namespace bitfed
