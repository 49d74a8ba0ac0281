#include "bitfed/data/catalog/download.h"

#include "bitfed/base/error.h"

#ifdef BITFED_FETCH
#include <curl/curl.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>

#include "bitfed/base/byte_io.h"
#endif

namespace bitfed {

#ifndef BITFED_FETCH

std::string download(const std::string& url, const std::filesystem::path&,
                     const std::function<void(uint64_t, uint64_t)>&, bool&) {
  throw failure("{}: this program was built without downloads (BITFED_FETCH=OFF)", url);
}

#else

namespace {

struct Transfer {
  std::FILE* file = nullptr;
  uint64_t written = 0;
  int write_error = 0;
  bool too_large = false;
  const std::function<void(uint64_t, uint64_t)>* progress = nullptr;
  std::exception_ptr thrown;  // by the progress callback: libcurl is C and must not be unwound
};

// libcurl's write callback: a return value other than the number of bytes ends the transfer.
size_t on_data(char* data, size_t size, size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  const size_t bytes = size * count;
  transfer.written += bytes;
  transfer.too_large = transfer.written > kMaximumFileBytes;
  if (transfer.too_large) return 0;
  const size_t written = std::fwrite(data, 1, bytes, transfer.file);
  if (written != bytes) transfer.write_error = errno;
  return written;
}

// libcurl's progress callback: a return value other than 0 ends the transfer.
int on_progress(void* user, curl_off_t total, curl_off_t done, curl_off_t, curl_off_t) {
  auto& transfer = *static_cast<Transfer*>(user);
  try {
    if (*transfer.progress) (*transfer.progress)(static_cast<uint64_t>(done), static_cast<uint64_t>(total));
    return 0;
  } catch (...) {
    transfer.thrown = std::current_exception();
    return 1;
  }
}

void set_options(CURL* curl, const std::string& url, Transfer& transfer) {
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https,file");
  curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(curl, CURLOPT_MAXREDIRS, 10L);
  curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, 30L);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 100L);  // bytes per second …
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, 60L);    // … for a minute: the connection is dead
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "bitfed");
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_data);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &transfer);
}

// Transient errors: a lost connection, an overloaded server; not a missing address.
bool is_transient(CURLcode code, long status) {
  if (code == CURLE_HTTP_RETURNED_ERROR) return status >= 500 || status == 408 || status == 429;
  return code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_PARTIAL_FILE ||
         code == CURLE_OPERATION_TIMEDOUT || code == CURLE_RECV_ERROR || code == CURLE_SEND_ERROR ||
         code == CURLE_GOT_NOTHING || code == CURLE_SSL_CONNECT_ERROR;
}

}  // namespace

std::string download(const std::string& url, const std::filesystem::path& path,
                     const std::function<void(uint64_t, uint64_t)>& progress, bool& retry) {
  static const CURLcode kStarted = curl_global_init(CURL_GLOBAL_DEFAULT);
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl(
      kStarted == CURLE_OK ? curl_easy_init() : nullptr, curl_easy_cleanup);
  if (curl == nullptr) throw failure("libcurl could not be started");
  Transfer transfer;
  transfer.progress = &progress;
  transfer.file = std::fopen(path.c_str(), "wb");
  if (transfer.file == nullptr)
    throw failure("{}: cannot be written: {}", path.string(), std::strerror(errno));
  set_options(curl.get(), url, transfer);
  const CURLcode code = curl_easy_perform(curl.get());
  if (std::fclose(transfer.file) != 0 && transfer.write_error == 0) transfer.write_error = errno;
  if (transfer.thrown) std::rethrow_exception(transfer.thrown);
  if (transfer.write_error != 0) {
    throw failure("{}: cannot be written: {}", path.string(), std::strerror(transfer.write_error));
  }
  long status = 0;
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &status);
  retry = !transfer.too_large && is_transient(code, status);
  if (code == CURLE_OK) return "";
  if (transfer.too_large) return fmt::format("more than {} bytes", kMaximumFileBytes);
  if (code == CURLE_HTTP_RETURNED_ERROR) return fmt::format("the server answered with status {}", status);
  return curl_easy_strerror(code);
}

#endif

}  // namespace bitfed
