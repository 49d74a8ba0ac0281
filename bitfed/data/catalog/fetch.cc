#include "bitfed/data/catalog/fetch.h"

#include <unistd.h>

#include <cstdlib>
#include <system_error>
#include <thread>

#include "bitfed/base/byte_io.h"
#include "bitfed/base/error.h"
#include "bitfed/base/gzip.h"
#include "bitfed/base/hash/digest.h"
#include "bitfed/base/hash/md5.h"
#include "bitfed/data/catalog/download.h"
#include "bitfed/data/formats/tar.h"

namespace bitfed {
namespace {

namespace fs = std::filesystem;

// A temporary file that is deleted unless it was renamed to its final name.
class PartFile {
 public:
  explicit PartFile(const fs::path& final_name)
      : final_name_(final_name), path_(fmt::format("{}.{}.part", final_name.string(), getpid())) {}
  ~PartFile() {
    std::error_code code;
    fs::remove(path_, code);
  }
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;

  const fs::path& path() const { return path_; }
  void keep() {
    std::error_code code;
    fs::rename(path_, final_name_, code);
    if (code) throw failure("{}: cannot be written: {}", final_name_.string(), code.message());
  }

 private:
  fs::path final_name_;
  fs::path path_;
};

// "" where the checksums are the published ones, else the difference.
std::string compare_sums(const Bytes& bytes, const DownloadFile& file) {
  if (!file.sha256.empty()) {
    const std::string sum = sha256_hex(bytes);
    if (sum != file.sha256) return fmt::format("sha256 {}, expected {}", sum, file.sha256);
  }
  if (!file.md5.empty()) {
    const std::string sum = Md5().update(bytes).hex();
    if (sum != file.md5) return fmt::format("md5 {}, expected {}", sum, file.md5);
  }
  return "";
}

void download_with_retries(const std::string& url, const fs::path& path, const FetchOptions& options,
                           const std::function<void(uint64_t, uint64_t)>& progress) {
  auto wait = options.first_wait;
  for (int attempt = 1;; ++attempt) {
    bool retry = false;
    const std::string problem = download(url, path, progress, retry);
    if (problem.empty()) return;
    if (!retry || attempt >= options.attempts) {
      throw failure("{}: download failed: {} (attempts: {})", url, problem, attempt);
    }
    std::this_thread::sleep_for(wait);
    wait *= 2;
  }
}

bool is_archive(const DownloadFile& file) {
  return file.saved_as.ends_with(".tar.gz");
}

// Archives are not kept, so only their unpacked files can be found again; see has_files.
bool is_there(const DownloadFile& file, const fs::path& path) {
  std::error_code code;
  return !is_archive(file) && fs::is_regular_file(path, code) && compare_sums(read_file(path), file).empty();
}

void unpack(const Bytes& archive, const std::string& name, const fs::path& folder) {
  const Bytes tar = gunzip(archive, name);
  for (const TarFile& file : parse_tar(tar, name)) {
    const fs::path path = folder / file.path;
    create_folders(path.parent_path());
    write_file_atomically(path, file.bytes);
  }
}

void fetch_file(const DownloadFile& file, const fs::path& folder, const FetchOptions& options,
                const FetchProgress& progress) {
  const fs::path path = folder / file.saved_as;
  if (is_there(file, path)) return;
  create_folders(path.parent_path());
  const std::string url = options.mirror.empty() ? file.url : mirrored(file.url, options.mirror);
  PartFile part(path);
  download_with_retries(url, part.path(), options, [&](uint64_t done, uint64_t total) {
    if (progress) progress(path.filename().string(), done, total);
  });
  const Bytes bytes = read_file(part.path());
  if (const std::string problem = compare_sums(bytes, file); !problem.empty()) {
    throw failure("{}: the download of {} bytes has {}; it was discarded", url, bytes.size(), problem);
  }
  if (is_archive(file)) {
    unpack(bytes, url, folder);
  } else {
    part.keep();
  }
}

}  // namespace

FetchOptions fetch_options_from_environment() {
  FetchOptions options;
  if (const char* mirror = std::getenv("BITFED_MIRROR")) options.mirror = mirror;
  return options;
}

// http://home.org/a/b.gz and http://mirror:8080/x give http://mirror:8080/x/a/b.gz.
std::string mirrored(const std::string& url, const std::string& mirror) {
  const size_t host = url.find("://");
  const size_t path = host == std::string::npos ? host : url.find('/', host + 3);
  std::string base = mirror;
  while (base.ends_with('/') && !base.ends_with("://")) base.pop_back();
  return base + (path == std::string::npos ? "" : url.substr(path));
}

void fetch_dataset(const DatasetEntry& entry, const fs::path& folder, const FetchOptions& options,
                   const FetchProgress& progress) {
  if (entry.downloads.empty()) {
    throw input_error("data set '{}' cannot be fetched; {}", entry.name, entry.how_to_get);
  }
  for (const DownloadFile& file : entry.downloads) {
    if (file.md5.empty() && file.sha256.empty()) {
      throw input_error("data set '{}': {} has no published checksum to verify it", entry.name, file.url);
    }
    fetch_file(file, folder, options, progress);
  }
}

}  // namespace bitfed
